"""Limits on the resources that reading a file may take."""

from __future__ import annotations

from dataclasses import dataclass

# The default of `Limits.memory` for a file of n bytes: 12 MiB + 3 n, or 24 n if that is more. A file of pure structure
# takes up to 22 n (operators without options, tensors with short names); in a usual one most bytes are constants, which
# take nothing.
_BASE, _PER_BYTE, _PER_BYTE_DENSE = 12 << 20, 3, 24


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the reader; a file that exceeds one of them is refused with LimitError.

    Attributes:
        file_size: Bytes of the file.
        tables: Tables that are read; one that several places point to counts once.
        elements: Entries of all lists of tables and of indices, summed.
        depth: Tables within tables, counted from the root.
        memory: Bytes of all objects that are built, as the reader estimates them. None: in proportion to the file.
    """

    file_size: int = 1 << 40
    tables: int = 4_000_000
    elements: int = 40_000_000
    depth: int = 16
    memory: int | None = None

    def memory_for(self, file_size: int) -> int:
        """Return the bytes of objects that may be built from a file of `file_size` bytes."""
        if self.memory is not None:
            return self.memory
        return max(_BASE + _PER_BYTE * file_size, _PER_BYTE_DENSE * file_size)
