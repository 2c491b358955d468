"""A target of the conformance suite: a runtime or a foreign system. Arguments: its description, ..., the folder.

It is a stand-alone program that calls runtimes through the folder runtimes/child: it needs only Python 3.8, NumPy of
any version, and the runtime.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from importlib import import_module
from typing import Any

_WINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
sys.path.insert(0, os.path.join(_WINGS, "engine", "runtimes", "child"))

#: The exit status of a shell that finds no program: the target is not called again.
_NOT_FOUND = 127
#: Kinds of lines of case.txt, and characters of a reason that are written.
_KINDS, _REASON = ("input", "output"), 300
#: Words after which an error's text is of no use to a reader.
_BACKTRACE = "Stack backtrace:"


def main(description: str, folder: str) -> None:
    """Run every case that the folder lists. `description` is JSON: adapter, resolver, settings, packages."""
    job = {"threads": 1, **json.loads(description)}
    load, _ = import_module("tflq_drivers").adapter_of(job)
    try:
        runtime = load()
    except ImportError as error:
        packages = " ".join(job["packages"])
        print(f"{error}; pip install {packages} for {sys.executable}, or name a Python that has it (--python)")
        sys.exit(_NOT_FOUND)
    with open(os.path.join(folder, "cases.txt")) as listed:
        names = listed.read().split()
    for name in names:
        place = os.path.join(folder, name)
        try:
            outputs = _run_case(runtime, job, place)
        except Exception as error:
            with open(os.path.join(place, "refused.txt"), "w", encoding="utf-8") as text:
                text.write(_shorten(f"{type(error).__name__}: {error}", place))
            continue
        for file, value in outputs.items():
            value.tofile(os.path.join(place, file))


def _shorten(text: str, place: str) -> str:
    """Return an error's text on one line without the folders of the case and of temporary files, whose names vary."""
    folder = re.escape(os.path.join(tempfile.gettempdir(), ""))
    text = re.sub(rf"{folder}[^\s/:'\"]+/", "", text.replace(os.path.join(place, ""), "").replace(place, "CASE"))
    return " ".join(text.split()).partition(_BACKTRACE)[0].strip()[:_REASON]


def _run_case(runtime: Any, job: Any, place: str) -> Any:
    """Return the contents of a case's files of outputs, by name."""
    import numpy as np

    with open(os.path.join(place, "model.tflite"), "rb") as file:
        model = file.read()
    with open(os.path.join(place, "case.txt")) as text:
        rows = [line.split() for line in text]
    inputs, wanted = ([(np.dtype(w[1]), tuple(map(int, w[2:]))) for w in rows if w[0] == k] for k in _KINDS)
    outputs = {}
    for number in range(next(int(w[1]) for w in rows if w[0] == "samples")):
        given = {}
        for position, (dtype, shape) in enumerate(inputs):
            path = os.path.join(place, f"in{number}_{position}.bin")
            given[str(position)] = np.fromfile(path, dtype).reshape(shape)
        results = runtime(model, job).step(None, given, _quiet)
        for position, value in results.items():
            if isinstance(value, bytes):
                value = np.frombuffer(value, np.uint8)
            elif job["is_foreign"] and int(position) < len(wanted):
                _check(position, value, *wanted[int(position)])
            outputs[f"out{number}_{position}.bin"] = np.ascontiguousarray(value)
    return outputs


def _quiet(doing: str) -> None:
    """Ignore a stage."""


def _check(position: str, value: Any, dtype: Any, shape: Any) -> None:
    """Raise a TypeError if an output is not of the model's type and size."""
    size = 1
    for length in shape:
        size *= length
    if value.dtype != dtype:
        raise TypeError(f"output {position} is {value.dtype}, not {dtype}")
    if value.size != size:
        raise TypeError(f"output {position} has {value.size} elements, not {size}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[-1])
