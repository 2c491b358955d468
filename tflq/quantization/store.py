"""Arrays of many samples, in memory as far as possible and in temporary files beyond that."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any

import numpy as np

from tflq.typing import Array

#: Bytes that a store keeps in memory before it uses files.
MEMORY = 384 << 20


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of one array in a file."""

    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(slots=True, eq=False)
class _Rows:
    """One tensor's arrays, batch by batch: all in memory, or all in one file."""

    file: IO[bytes] | None
    arrays: list[Array | _Place] = field(default_factory=list)
    size: int = 0


class Store:
    """Tensors by name, each a sequence of arrays; a tensor that does not fit in memory gets its own file.

    Files are unnamed, or deleted by the system when they are closed: they disappear with the store, even after a crash.
    Arrays from files are memory-mapped when they are read. `spilled` is the peak number of bytes in files.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._tensors: dict[object, _Rows] = {}
        self._held = self._on_disk = self.spilled = 0

    def begin(self, name: object, size: int) -> None:
        """Make room for a tensor of about `size` bytes in all its batches."""
        fits = self._held + size <= self._memory
        file = None if fits else tempfile.TemporaryFile(prefix="tflq-activations-")  # noqa: SIM115 (closed by drop)
        self._tensors[name] = _Rows(file)

    def append(self, name: object, array: Array) -> None:
        """Add the next batch of a tensor started with `begin`."""
        rows = self._tensors[name]
        rows.size += array.nbytes
        if rows.file is None:
            self._held += array.nbytes
            rows.arrays.append(array)
            return
        rows.arrays.append(_Place(rows.file.seek(0, 2), array.shape, array.dtype))
        rows.file.write(np.ascontiguousarray(array).data if array.size else b"")
        self._on_disk += array.nbytes
        self.spilled = max(self.spilled, self._on_disk)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def get(self, name: object, batch: int) -> Array:
        """Return one batch of a tensor; those in files are read-only."""
        rows = self._tensors[name]
        entry = rows.arrays[batch]
        if not isinstance(entry, _Place):
            return entry
        assert rows.file is not None  # places are in files
        rows.file.flush()
        if not all(entry.shape):
            return np.empty(entry.shape, entry.dtype)
        mapped = np.memmap(rows.file, entry.dtype, "r", entry.start, entry.shape)
        return np.asarray(mapped)

    def batches(self, name: object) -> Iterator[Array]:
        """Yield all batches of a tensor in order."""
        return (self.get(name, batch) for batch in range(len(self._tensors[name].arrays)))

    def drop(self, name: object) -> None:
        """Forget a tensor; its file is deleted."""
        rows = self._tensors.pop(name)
        if rows.file is None:
            self._held -= rows.size
        else:
            self._on_disk -= rows.size
            rows.file.close()

    def close(self) -> None:
        """Forget everything."""
        for name in tuple(self._tensors):
            self.drop(name)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
