"""The right classes of samples, read from a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FileAccessError, InputError
from tflq.model.storage.archive import opened
from tflq.model.storage.arrays import load_array
from tflq.model.storage.reading import read_bytes
from tflq.typing import Array


def read_labels(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """Return one class per sample: from an `.npy`, an `.npz`, or a text file with one number per line.

    An `.npz` holds one array, or several with one named `y`.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It does not hold one row of whole numbers.
    """
    labels = _read(Path(path))
    flat = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.ndim != 1 or flat.dtype.kind not in "iu":
        got = f"{labels.dtype} {list(labels.shape)}"
        raise InputError("holds no labels", name=str(path), expected="whole numbers, one per sample", got=got)
    return flat.astype(np.int64)


def _read(path: Path) -> Array:
    if path.suffix == ".npy":
        return load_array(path)
    if path.suffix == ".npz":
        with opened(path) as arrays:
            name = next(iter(arrays)) if len(arrays) == 1 else "y"
            if name not in arrays:
                raise InputError("has no array of labels", name=str(path), expected="y", got=", ".join(arrays))
            return arrays[name]
    try:
        return np.array([int(word) for word in read_bytes(path).decode().split()])
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise InputError(f"holds no labels ({error})", name=str(path)) from error
