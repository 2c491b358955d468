"""A target of the conformance suite: a real runtime in Python. Arguments: adapter, resolver, folder.

It is a stand-alone program that calls runtimes through runtimes/child.py: it needs only Python 3.8, NumPy of any
version, and the runtime.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from typing import Any

_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "runtimes", "child.py")


def _child() -> Any:
    spec = importlib.util.spec_from_file_location("tflq_child", _CHILD)
    assert spec is not None  # the file is next to this one
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(adapter: str, resolver: str, folder: str) -> None:
    """Run every case that the folder lists."""
    child = _child()
    import numpy as np

    load, _ = child.beside("drivers").ADAPTERS[adapter]
    runtime = load()
    job = {"threads": 1, "resolver": resolver}
    with open(os.path.join(folder, "cases.txt")) as listed:
        names = listed.read().split()
    for name in names:
        place = os.path.join(folder, name)
        with open(os.path.join(place, "model.tflite"), "rb") as file:
            model = file.read()
        try:
            with open(os.path.join(place, "case.txt")) as text:
                rows = [line.split() for line in text]
            inputs = [(np.dtype(w[1]), tuple(map(int, w[2:]))) for w in rows if w[0] == "input"]
            outputs = {}
            for number in range(next(int(w[1]) for w in rows if w[0] == "samples")):
                values = []
                for position, (dtype, shape) in enumerate(inputs):
                    path = os.path.join(place, f"in{number}_{position}.bin")
                    values.append(np.fromfile(path, dtype).reshape(shape))
                stage = child.Stage(io.BytesIO())
                given = {str(position): value for position, value in enumerate(values)}
                results = runtime(model, job).step(None, given, stage)
                for position, value in results.items():
                    outputs[f"out{number}_{position}.bin"] = np.ascontiguousarray(value)
            for name, value in outputs.items():
                value.tofile(os.path.join(place, name))
        except Exception as error:
            with open(os.path.join(place, "refused.txt"), "w") as text:
                text.write(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
