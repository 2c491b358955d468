"""Rows of arrays in `.npy` and `.npz` files, read as they are asked for: files may be larger than memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FileAccessError, InputError

Array = NDArray[Any]


def rows_of_npy(path: Path) -> Iterator[Array]:
    """The rows (along axis 0) of the array in a file."""
    try:
        with path.open("rb") as file:
            yield from _rows(file)
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except (ValueError, EOFError) as error:
        raise InputError(f"is no readable .npy file ({error})", name=str(path)) from error


def names_in_npz(path: Path) -> tuple[str, ...]:
    """The names of an archive's arrays, in its order."""
    with _opened(path) as archive:
        return tuple(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))


def rows_of_npz(path: Path, names: tuple[str, ...]) -> Iterator[tuple[Array, ...]]:
    """The rows of several arrays of an archive side by side; all have as many."""
    try:
        with _opened(path) as archive, ExitStack() as files:
            entries = [_rows(files.enter_context(archive.open(f"{name}.npy"))) for name in names]
            yield from zip(*entries, strict=True)
    except InputError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"cannot be read row by row ({error})", name=str(path)) from error


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except zipfile.BadZipFile as error:
        raise InputError(f"is no readable .npz archive ({error})", name=str(path)) from error


def _rows(file: IO[bytes]) -> Iterator[Array]:
    """The rows of an array in NumPy's format, version 1 or 2; nothing is ever unpickled. An array that is stored column
    by column is read whole.
    """
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(file)
    if dtype.hasobject:
        raise ValueError("holds Python objects")
    if not shape:
        raise ValueError("has no rows: a single number")
    if fortran:
        yield from _array(file, dtype, shape[::-1]).T
        return
    for _ in range(shape[0]):
        yield _array(file, dtype, shape[1:])


def _array(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    size = prod(shape) * dtype.itemsize
    data = file.read(size)
    if len(data) != size:
        raise EOFError("ends within a row")
    return np.frombuffer(data, dtype).reshape(shape)
