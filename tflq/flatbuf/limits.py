"""How much a file may ask of its reader."""

from __future__ import annotations

from dataclasses import dataclass

# What a file of n bytes may become where `Limits.memory` is None: 12 MiB + 3 n, or 24 n where that is more. A file that
# is all structure takes up to 22 n (operators without options, of tensors with short names); most bytes of a usual one
# are constants, which take nothing.
_BASE, _PER_BYTE, _PER_BYTE_DENSE = 12 << 20, 3, 24


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that the reader keeps; a file beyond one of them is refused with LimitError.

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
        """Return bytes of objects that a file of `file_size` bytes may become."""
        if self.memory is not None:
            return self.memory
        return max(_BASE + _PER_BYTE * file_size, _PER_BYTE_DENSE * file_size)
