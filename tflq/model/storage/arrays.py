"""Arrays in NumPy's format, read without trust: type and shape first, memory only for the elements in the file.

Source: NumPy's documentation of its format (NEP 1), versions 1.0 and 2.0.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from tflq.errors import FileAccessError, InputError, memory_named
from tflq.model.storage.output import PathLike
from tflq.model.storage.reading import open_file
from tflq.typing import Array

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_CHUNK = 1 << 20
#: An array without elements takes no bytes, for any declared number of rows.
_EMPTY_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """The header of an array's file; `by_columns` is Fortran's order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool = False

    @property
    def size(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def digest(array: Array) -> str:
    """Return the name of an array: 32 hexadecimal digits of the SHA-256 of its type, shape and elements in C order."""
    said = f"{array.dtype.str}{list(array.shape)}".encode()
    return hashlib.sha256(said + np.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def load_array(path: PathLike) -> Array:
    """Return the array in an `.npy` file.

    Raises:
        FileAccessError: The path cannot be read.
        InputError: It holds no array.
    """
    with _open(path) as (file, header):
        return read_elements(file, header)


def load_rows(path: PathLike) -> Iterator[Array]:
    """Yield the rows, along axis 0, of the array in an `.npy` file, one after another. Raise as `load_array`."""
    with _open(path) as (file, header):
        yield from read_rows(file, header)


@contextmanager
def _open(path: PathLike) -> Iterator[tuple[IO[bytes], Header]]:
    try:
        with open_file(path) as file:
            header = read_header(file)
            if header.size > os.fstat(file.fileno()).st_size - file.tell():
                raise ValueError(f"is too short for {header.dtype} {list(header.shape)}")
            yield file, header
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except (ValueError, EOFError) as error:
        raise InputError(f"is not a readable .npy file ({error})", name=os.fspath(path)) from error


def read_header(file: IO[bytes]) -> Header:
    """Read up to the first element.

    Raises:
        ValueError: It is not an array, or one of Python objects.
    """
    version = np.lib.format.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"is of version {version} of NumPy's format, which is not read")
    try:
        shape, by_columns, dtype = _READERS[version](file)
    except Exception as error:  # it is a Python expression, of which NumPy and Python's tokenizer raise many kinds
        raise ValueError(f"cannot parse its header: {error}") from error
    if dtype.hasobject:
        raise ValueError("holds Python objects, which are never unpickled")
    header = Header(tuple(map(int, shape)), dtype, bool(by_columns))
    empty = header.size == 0 and max(header.shape, default=0) > _EMPTY_ROWS
    if any(extent < 0 for extent in header.shape) or dtype.itemsize == 0 or empty:
        raise ValueError(f"is not an array: {dtype} {list(shape)}")
    return header


def read_elements(file: IO[bytes], header: Header) -> Array:
    """Return the array after its header, from a file with enough bytes.

    Raises:
        EOFError: The file ends early.
    """
    with memory_named(f"an array of shape {list(header.shape)}"):
        flat = np.empty(math.prod(header.shape), header.dtype)
    _fill(file, flat)
    return flat.reshape(header.shape[::-1]).T if header.by_columns else flat.reshape(header.shape)


def row_size(header: Header) -> int:
    """Return the bytes that reading an array row by row needs at once; in Fortran's order, those of the whole."""
    return header.size if header.by_columns or not header.shape else header.size // max(header.shape[0], 1)


def read_rows(file: IO[bytes], header: Header) -> Iterator[Array]:
    """Yield the rows of the array after its header. Raise as `read_elements`, or ValueError for a single number."""
    if not header.shape:
        raise ValueError("has no rows: a single number")
    if header.by_columns:
        yield from read_elements(file, header)
        return
    row = replace(header, shape=header.shape[1:])
    for _ in range(header.shape[0]):
        yield read_elements(file, row)


def _fill(file: IO[bytes], flat: Array) -> None:
    """Read all elements of a flat array. Raise EOFError if the file ends early."""
    data = flat.view(np.uint8).data
    at = 0
    while at < len(data):
        piece = file.read(min(_CHUNK, len(data) - at))
        if not piece:
            raise EOFError(f"ends after {at} of {len(data)} bytes")
        data[at : at + len(piece)] = piece
        at += len(piece)
