"""Memory of arrays that are views into a mapped file."""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np

from tflq.typing import Array

#: Bytes from which giving memory back is worth a system call.
_LEAST = 1 << 20


def release(array: Array) -> None:
    """Give the pages of a mapped array back to the system, which reads them from the file again if they are needed.

    Does nothing for other arrays, and where the system has no such call.
    """
    if array.nbytes < _LEAST or not hasattr(mmap, "MADV_DONTNEED"):
        return
    file = _mapping(array)
    if file is None or array.flags.writeable:
        return
    low, high = np.lib.array_utils.byte_bounds(array)
    start = low - np.frombuffer(file, np.uint8).ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + high - low) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        with suppress(OSError, ValueError):
            file.madvise(mmap.MADV_DONTNEED, first, last - first)


def _mapping(array: Array) -> mmap.mmap | None:
    """Return the map that an array is a view of; None if there is none."""
    base: object = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None
