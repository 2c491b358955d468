"""The schema data, compiled once for fast look-up by reader and writer: one Layout per table.

Limits on the resources that reading a file may take.

The plan of a table from its description (vtable): how to read each present field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from flatbuffers import number_types

from tflq.model.ir import Record
from tflq.model.ir.model import schema


class FieldKind(Enum):
    """The content of a field."""

    SCALAR = auto()
    STRING = auto()
    NUMBERS = auto()
    TABLE = auto()
    TABLES = auto()
    UNION = auto()


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar type: its flatbuffers flags and packer, its NumPy type as stored, and its size in bytes."""

    name: str
    flags: Any
    packer: struct.Struct
    dtype: np.dtype[Any]
    size: int


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table.

    `number` belongs to scalars and vectors of them, `target` (a table or union) to the others. `id` is the field's slot
    in the vtable; for a union it is the member's slot, and the type number is one slot before.
    """

    name: str
    id: int
    kind: FieldKind
    number: Number | None = None
    target: str = ""
    default: Any = None
    align: int = 1


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table: its fields by name and by slot, its unions by their type's slot, and its value without any fields."""

    name: str
    fields: Mapping[str, Field]
    slots: Mapping[int, Field]
    type_slots: Mapping[int, Field]
    defaults: Mapping[str, Any]
    absent: Record


_PACKED = {
    "bool": (number_types.BoolFlags, "?"),
    "int8": (number_types.Int8Flags, "i1"),
    "uint8": (number_types.Uint8Flags, "u1"),
    "int16": (number_types.Int16Flags, "<i2"),
    "uint16": (number_types.Uint16Flags, "<u2"),
    "int32": (number_types.Int32Flags, "<i4"),
    "uint32": (number_types.Uint32Flags, "<u4"),
    "int64": (number_types.Int64Flags, "<i8"),
    "uint64": (number_types.Uint64Flags, "<u8"),
    "float32": (number_types.Float32Flags, "<f4"),
    "float64": (number_types.Float64Flags, "<f8"),
}

#: Every scalar type of the format.
NUMBERS: Mapping[str, Number] = MappingProxyType(
    {
        name: Number(name, flags, flags.packer_type, np.dtype(code), flags.bytewidth)
        for name, (flags, code) in _PACKED.items()
    }
)


#: Formats: models, the dumps of tflite-micro, and the header of LiteRT-LM's packages.
_FORMATS = ("tflite", "layer_by_layer", "litertlm")


@cache
def layout(table: str) -> TableLayout:
    """Return the layout of a table of the schema."""
    fields = {name: _field(name, *entry) for name, entry in _tables()[table].items()}
    defaults = MappingProxyType({field.name: field.default for field in fields.values()})
    return TableLayout(
        name=table,
        fields=MappingProxyType(fields),
        slots=MappingProxyType({field.id: field for field in fields.values()}),
        type_slots=MappingProxyType({f.id - 1: f for f in fields.values() if f.kind is FieldKind.UNION}),
        defaults=defaults,
        absent=Record(table, defaults),
    )


@cache
def _tables() -> dict[str, Any]:
    """Return the tables of all formats; their names do not clash."""
    return {name: table for format_ in _FORMATS for name, table in schema(format_)["tables"].items()}


@cache
def _unions() -> dict[str, Any]:
    return {**schema()["unions"], **schema("litertlm")["unions"]}


@cache
def members(union: str) -> tuple[str | None, ...]:
    """Return the tables of a union by type number; 0 means none, and None is a member that is not read."""
    return tuple(_unions()[union])


def _field(name: str, slot: int, type_name: str, attributes: Mapping[str, Any] = MappingProxyType({})) -> Field:
    element = type_name.strip("[]")
    vector = element != type_name
    if element in _unions():
        return Field(name, slot + 1, FieldKind.UNION, target=element)
    if element in _tables():
        return Field(name, slot, FieldKind.TABLES if vector else FieldKind.TABLE, target=element)
    if element == "string":
        return Field(name, slot, FieldKind.STRING)
    enum = schema()["enums"].get(element)
    number = NUMBERS[enum["type"] if enum else element]
    if vector:
        return Field(name, slot, FieldKind.NUMBERS, number, align=attributes.get("align", 1))
    kind: type = bool if number.name == "bool" else float if number.dtype.kind == "f" else int
    return Field(name, slot, FieldKind.SCALAR, number, default=kind(attributes.get("default", 0)))


# The default of `Limits.memory` for a file of n bytes: 12 MiB + 3 n, or 24 n if that is more. A file of pure structure
# takes up to 22 n (operators without options, tensors with short names); in a usual one most bytes are constants, which
# take nothing.
_BASE, _PER_BYTE, _PER_BYTE_DENSE = 12 << 20, 3, 24


@dataclass(frozen=True, slots=True)
class ReadLimits:
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


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The description in a vtable: the table's size, and the place of each present field."""

    size: int
    scalars: tuple[tuple[str, Callable[[Any, int], tuple[Any, ...]], int], ...]
    references: tuple[tuple[Field, int], ...]
    unions: tuple[tuple[Field, int, int], ...]
    unknown: tuple[tuple[int, int, int], ...]

    @property
    def empty(self) -> bool:
        """True if no field is present."""
        return not (self.scalars or self.references or self.unions or self.unknown)


def arrange(table: TableLayout, size: int, present: dict[int, int]) -> TablePlan:
    """Return a table's present slots, sorted by the way of reading. `present`: offset in the table by slot."""
    scalars, references, unknown = [], [], []
    ends = sorted({*present.values(), size})
    following = dict(pairwise(ends))
    for slot, at in present.items():
        field = table.slots.get(slot)
        if field is None:
            if slot not in table.type_slots:
                unknown.append((slot, at, following[at] - at))
        elif field.kind is FieldKind.SCALAR and field.number is not None:
            scalars.append((field.name, field.number.packer.unpack_from, at))
        elif field.kind is not FieldKind.UNION:
            references.append((field, at))
    unions = [(f, present[slot], present.get(f.id, 0)) for slot, f in table.type_slots.items() if slot in present]
    return TablePlan(size, tuple(scalars), tuple(references), tuple(unions), tuple(unknown))
