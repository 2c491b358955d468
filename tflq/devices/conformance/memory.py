"""Arrays of cases that are made for a target and kept in no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tflq.model.storage.arrays import digest
from tflq.typing import Array


class Memory(Mapping[str, Array]):
    """An archive of arrays in memory."""

    source = "questions"

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def put(self, array: Array) -> str:
        """Keep an array and return its digest."""
        name = digest(array)
        self.arrays[f"data/{name}"] = array
        return name

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)
