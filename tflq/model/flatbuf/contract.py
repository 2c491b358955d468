"""The interface of a binding: a class of the vocabulary, its table, and the operations on a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from tflq.model import ir
from tflq.typing import Array

Fields = Mapping[str, Any]
Unknown = tuple[ir.UnknownField, ...]


class Source(Protocol):
    """The operations that `load` needs on the file that is read."""

    def integers(self, vector: Array) -> tuple[int, ...]:
        """Return the vector as a tuple of Python numbers."""

    def outside(self, offset: int, size: int, table: str, field: str) -> memoryview:
        """Return bytes outside the tables, `offset` counted from the start of the file."""


class Sink(Protocol):
    """The operations that `store` needs on the file that is written."""

    def inside(self, buffer: ir.Buffer) -> bool:
        """Return whether this buffer's bytes go into its table."""

    def outside(self, data: Any) -> tuple[int, int]:
        """Store bytes outside the tables; return their offset from the start of the file, and their number."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A class of the vocabulary and its table: values from fields, and fields from values."""

    type: type
    load: Callable[[Fields, Unknown, Source], Any]
    store: Callable[[Any, Sink], Fields]


@dataclass(frozen=True, slots=True)
class Pair:
    """A table that the vocabulary holds as a plain pair."""

    first: str | None
    second: int
    unknown: Unknown


def load_record(table: str, fields: Fields, unknown: Unknown) -> ir.Record:
    """Return a table without a class of its own."""
    return ir.Record(table, MappingProxyType(dict(fields)), unknown)


def indices(vector: Array | None, source: Source) -> tuple[int, ...] | None:
    """Return the vector as a tuple; None if the field is absent."""
    return None if vector is None else source.integers(vector)
