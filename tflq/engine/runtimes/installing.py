"""Ready targets installed into environments of their own, with the versions that were measured.

An environment is the folder NAME of TFLQ_TARGETS, or of `tflq/targets` in the user's folder of data. A target that this
Python does not have runs in its environment, if there is one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from tflq.errors import FileAccessError, RuntimeFailed, UnknownNameError

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
