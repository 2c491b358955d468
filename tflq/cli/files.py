"""Writing what was asked for, with the errors of this package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tflq.errors import FileAccessError


def write_text(path: str, text: str) -> None:
    """Write UTF-8 text with the same line ends on every system."""
    try:
        Path(path).write_bytes(text.encode())
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error


def write_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    """Write an `.npz` archive; arrays of strings are stored as fixed-width bytes, since nothing is pickled."""
    import numpy as np

    plain = {name: value.astype(np.bytes_) if value.dtype.kind == "O" else value for name, value in arrays.items()}
    try:
        with open(path, "wb") as file:
            np.savez(file, **plain)
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
