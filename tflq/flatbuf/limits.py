"""How much a file may ask of its reader."""

from __future__ import annotations

from dataclasses import dataclass

#: What reading may take beside three times the file's size, in bytes, where `Limits.memory` is None.
_BASE_MEMORY = 12 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that the reader keeps; a file beyond one of them is refused with LimitError.

    Attributes:
        file_size: Bytes of the file.
        tables: Tables that are read; one that several places point to counts once.
        elements: Entries of all lists of tables and of indices, summed.
        depth: Tables within tables, counted from the root.
        memory: Bytes of all objects that are built, as the reader estimates them. None: 12 MiB + 3 times the file.
    """

    file_size: int = 1 << 40
    tables: int = 4_000_000
    elements: int = 40_000_000
    depth: int = 16
    memory: int | None = None

    def memory_for(self, file_size: int) -> int:
        """Bytes of objects that a file of `file_size` bytes may become."""
        return _BASE_MEMORY + 3 * file_size if self.memory is None else self.memory
