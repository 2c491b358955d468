"""Models converted, and ready targets installed, in other environments.

Convert Keras, TensorFlow and ONNX models to float `.tflite` files, by TensorFlow's converter and onnx2tf.

Ready targets installed into environments of their own, with the versions that were measured.

An environment is the folder NAME of TFLQ_TARGETS, or of `tflq/targets` in the user's folder of data. A target that this
Python does not have runs in its environment, if there is one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tflq.engine.runtimes.converter import CANNOT, MISSING
from tflq.engine.runtimes.process import nameless_file, started, temporary_folder
from tflq.errors import FileAccessError, RuntimeFailed, RuntimeMissing, UnknownNameError
from tflq.model.storage.kinds import ONNX2TF, TENSORFLOW, converter_at
from tflq.typing import Array

CONVERTER = Path(__file__).with_name("converter.py")
#: Length of the converter's output in an error, and the time limit in seconds.
LAST_WORDS, TIMEOUT = 600, 1800.0
#: Packages to install, by converter.
_PACKAGES = {TENSORFLOW: "'tensorflow>=2.18'", ONNX2TF: "onnx2tf"}
#: Escape sequences of terminals, and lines that a progress bar overwrote; lines of a log, which are no errors.
_DECORATION = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\r\n]*\r(?!\n)")
_LOGGED = re.compile(r"[IWE]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IWE] |WARNING: All log messages")


@dataclass(frozen=True, slots=True)
class Converted:
    """The bytes of a float `.tflite` file, the converter with its version, and the Python that ran it.

    `given` and `results` are random inputs of the source and what its own framework computes of them, by name.
    """

    data: bytes
    by: str
    python: str
    given: Mapping[str, Array]
    results: Mapping[str, Array]


def converter_of(source: object) -> str:
    """Return the converter that a source needs: a path, or a Keras model in memory; "" if none."""
    if isinstance(source, (str, os.PathLike)):
        return converter_at(source)
    return TENSORFLOW if _is_keras(source) else ""


def _is_keras(source: object) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(source, keras.Model)


def conversions(source: Any, python: str | None = None) -> Iterator[Converted]:
    """Yield a model as a float `.tflite` file: with its open batch, if the converter takes one, then with a batch of 1.

    A path is converted in a child process, by the Python at `python`, else by the first of this one and those on PATH
    that has the converter. A Keras model is saved for it.

    Raises:
        RuntimeMissing: The converter is not installed there.
        RuntimeFailed: It cannot load or convert the model.
    """
    name = converter_of(source)
    with temporary_folder() as folder:
        if _is_keras(source):
            source.save(Path(folder) / "model.keras")
            source = Path(folder) / "model.keras"
        job = _Job(name, os.fspath(source), Path(folder))
        for batch in ("open", "one"):
            found = job.run(batch, python)
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True)
class _Job:
    """A conversion: the converter's name, the path of the source, and a folder for what it writes."""

    name: str
    source: str
    folder: Path

    def run(self, batch: str, python: str | None) -> Converted | None:
        """Return the converted model; None if the converter does not take an open batch."""
        missing = []
        for chosen in _pythons(python):
            status, said = self._call(chosen, batch)
            if status == MISSING:
                missing.append(chosen)
                continue
            if batch == "open" and status == CANNOT:
                return None
            return self._result(chosen, status, said)
        if not missing:
            raise RuntimeMissing(self.name, f"no Python at {python}")
        raise RuntimeMissing(
            self.name,
            f"not installed in {', '.join(missing)}, and {self.source} is converted by it: "
            f"{missing[0]} -m pip install {_PACKAGES[self.name]}, or name a Python that has it: --python PATH",
        )

    def _call(self, python: str, batch: str) -> tuple[int, str]:
        """Return the exit status, and the last words that the converter printed."""
        command = [python, str(CONVERTER), self.name, batch, os.path.abspath(self.source), str(self._out)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        with nameless_file() as printed:
            options = {"stdin": subprocess.PIPE, "stdout": printed, "stderr": subprocess.STDOUT, "env": environment}
            try:
                with started(command, **options) as child:
                    status = child.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                text = f"no end after {TIMEOUT:g} s while converting {self.source}"
                raise RuntimeFailed(self.name, text) from None
            except OSError as error:
                raise RuntimeMissing(self.name, f"cannot start {python}: {error.strerror}") from error
            return status, _last_words(printed)

    def _result(self, python: str, status: int, said: str) -> Converted:
        if status or not self._out.is_file():
            raise RuntimeFailed(self.name, f"cannot convert {self.source}: {said or _silent(python, status)}")
        facts = json.loads(self._out.with_suffix(".json").read_text())
        with np.load(self._out.with_suffix(".npz")) as file:
            given, results = ({n[2:]: file[n] for n in file.files if n.startswith(kind)} for kind in ("i/", "o/"))
        return Converted(self._out.read_bytes(), str(facts["by"]), python, given, results)

    @property
    def _out(self) -> Path:
        return self.folder / "float.tflite"


def _pythons(python: str | None) -> Sequence[str]:
    """Return the paths of Pythons to ask, in order: the given one, or this one and those on PATH."""
    names = (sys.executable, "python3", "python") if python is None else (python, os.path.join(python, "bin", "python"))
    found = [path for path in map(shutil.which, names) if path is not None]
    return list(dict.fromkeys(found))[: None if python is None else 1]


def _last_words(printed: IO[bytes]) -> str:
    """Return the end of what a process printed, without colours and progress bars."""
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - 16 * LAST_WORDS))
    text = _DECORATION.sub("", printed.read().decode(errors="replace"))
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not _LOGGED.match(line)]
    return "\n".join(lines)[-LAST_WORDS:]


def _silent(python: str, status: int) -> str:
    return f"{python} ended with status {status}, printed nothing and wrote no model"


_TOSA = ("tosa-converter-for-tflite==2026.2.0", "tosa-tools==2026.8.0")
_ONNX = ("tf2onnx==1.17.0", "tensorflow==2.21.0")
#: Packages of each target with the versions that docs/targets.md describes.
PINNED: Mapping[str, tuple[str, ...]] = {
    "litert": ("ai-edge-litert==2.3.0",),
    "openvino": ("openvino==2026.4.1",),
    "onnxruntime": ("onnxruntime==1.32.0", *_ONNX),
    "opencv": ("opencv-python-headless==5.0.0.93",),
    "tvm": ("apache-tvm==0.27.0.post1", "tflite==2.18.0"),
    "iree": ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", *_TOSA),
    "tosa-reference": _TOSA,
    "tract": ("tract==0.23.9", *_ONNX),
}
#: The Python of an environment, and the file that marks one whose installation ended well.
_PYTHON = "Scripts/python.exe" if os.name == "nt" else "bin/python"
_DONE = "tflq-installed.txt"
#: Seconds that an installation may take.
_TIMEOUT = 1800


def folder_of(name: str) -> Path:
    """Return the folder of a target's environment."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    whole = os.environ.get("TFLQ_TARGETS") or os.path.join(data, "tflq", "targets")
    return Path(whole).expanduser() / name


def python_of(name: str) -> str | None:
    """Return the Python of a target's environment; None if it was not installed."""
    path = folder_of(name) / _PYTHON
    return str(path) if name in PINNED and path.is_file() and (folder_of(name) / _DONE).is_file() else None


def install(name: str) -> str:
    """Install a target into an environment of its own and return its Python. One that is there is kept.

    Raises:
        UnknownNameError: There is no such target.
        FileAccessError: The folder cannot be written.
        RuntimeFailed: A package cannot be installed.
    """
    if name not in PINNED:
        raise UnknownNameError("target to install", name, tuple(PINNED))
    known = python_of(name)
    if known is not None:
        return known
    place = folder_of(name)
    try:
        venv.create(place, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise FileAccessError(str(place), str(error)[:200]) from error
    python = str(place / _PYTHON)
    words = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "numpy", *PINNED[name]]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise RuntimeFailed(name, f"pip did not end within {_TIMEOUT} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise RuntimeFailed(name, f"pip: {' '.join(lines)[:400]} (Python {sys.version.split()[0]})")
    (place / _DONE).write_text("\n".join(PINNED[name]) + "\n", encoding="utf-8")
    return python
