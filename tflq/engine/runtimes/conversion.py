"""Convert TensorFlow models to float `.tflite` files by TensorFlow's own converter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tflq.engine.runtimes.children import nameless_file, started, temporary_folder
from tflq.engine.runtimes.converter import MISSING
from tflq.errors import RuntimeFailed, RuntimeMissing

CONVERTER = Path(__file__).with_name("converter.py")
#: Length of TensorFlow's output in an error, and the time limit in seconds.
LAST_WORDS, TIMEOUT = 600, 1800.0
#: Suffixes of Keras files.
KERAS = frozenset({".keras", ".h5", ".hdf5"})


def is_of_tensorflow(source: object) -> bool:
    """Return whether a source is the path of a Keras file or SavedModel, or a Keras model in memory."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return path.suffix.lower() in KERAS or (path / "saved_model.pb").is_file()
    return _is_keras(source)


def _is_keras(source: object) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(source, keras.Model)


def converted(source: Any, python: str | None = None) -> bytes:
    """Return the bytes of a float `.tflite` file, with batch dimension 1 if the model leaves it open.

    A path is converted in a child process by the Python at `python` (None: this one); a Keras model is saved for it.

    Raises:
        RuntimeMissing: TensorFlow is not installed there.
        RuntimeFailed: It cannot load or convert the model.
    """
    with temporary_folder() as name:
        folder = Path(name)
        if _is_keras(source):
            source.save(folder / "model.keras")
            source = folder / "model.keras"
        return _converted(os.fspath(source), folder, python)


def _converted(source: str, folder: Path, python: str | None) -> bytes:
    chosen = shutil.which(python or sys.executable)
    if chosen is None:
        raise RuntimeMissing("tensorflow", f"no Python at {python}")
    out = folder / "float.tflite"
    command = [chosen, str(CONVERTER), os.path.abspath(source), str(out)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    with nameless_file() as printed:
        options = {"stdin": subprocess.PIPE, "stdout": printed, "stderr": subprocess.STDOUT, "env": environment}
        try:
            with started(command, **options) as child:
                status = child.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise RuntimeFailed("tensorflow", f"no end after {TIMEOUT:g} s while converting {source}") from None
        except OSError as error:
            raise RuntimeMissing("tensorflow", f"cannot start {chosen}: {error.strerror}") from error
        printed.seek(0)
        words = printed.read().decode(errors="replace").strip()[-LAST_WORDS:]
    if status == MISSING:
        raise RuntimeMissing(
            "tensorflow",
            f"{words}; {source} is converted by TensorFlow: install the extra `tensorflow`, or name a "
            f"Python that has it ({chosen})",
        )
    if status or not out.is_file():
        raise RuntimeFailed("tensorflow", f"cannot convert {source}: {words}")
    return out.read_bytes()
