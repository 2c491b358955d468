"""Write a Model as the bytes of a `.tflite` file.

The bytes depend only on the model's values. Tables come behind the data they point to, since FlatBuffers are built back
to front. Equal scales or zero points of several tensors are stored once. Bytes outside the tables follow them, each at
a multiple of 16, as in LiteRT's converter.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from flatbuffers.builder import Builder, BuilderSizeError
from numpy.typing import NDArray

from tflq.errors import FormatError, LimitError
from tflq.model.flatbuf.binding import BINDINGS
from tflq.model.flatbuf.layout import NUMBERS, Field, FieldKind, Number, TableLayout, layout, members
from tflq.model.flatbuf.reader import Readable, read
from tflq.model.ir import Buffer, Model, Record, UnknownField
from tflq.model.ir.model import schema
from tflq.typing import Array

#: Bytes of constants above which they are stored outside the tables, whose offsets reach 2 GiB.
MAX_INSIDE = (1 << 31) - (1 << 26)

_ALIGNMENT = 16
_TAIL = 16  # zero bytes behind the last outside bytes: vector instructions may read that far
_OFFSET_SIZE = 4
_ROOM = 1 << 16  # initial space for tables
#: Tables whose equal vectors of numbers are stored once: scales and zero points repeat per channel.
_SHARING = frozenset({"QuantizationParameters"})
_OFFSET = replace(NUMBERS["uint32"], name="offset")
_UNION_TYPE, _UNKNOWN = NUMBERS["uint8"], NUMBERS["uint64"]
_LAST_SLOT = (1 << 15) - 3  # a vtable has up to 65,535 bytes: two for each slot, and four at its head
#: Errors for a value of a wrong type or size.
_UNFIT = (TypeError, ValueError, OverflowError, AttributeError, LookupError, struct.error)


def write(model: Model, *, drop_unknown: bool = False, max_inside: int = MAX_INSIDE) -> bytes:
    """Return the file of `model`. Constants beyond `max_inside` bytes are all stored outside the tables.

    The result has been read back, so only valid files leave this function.

    Raises:
        FormatError: A value does not fit its field; or a field or option table that the schema does not name may hold
            an offset, which is meaningless in another file. `drop_unknown` leaves the latter out instead.
        LimitError: The tables take more than 2 GiB, or more than the reader's limits allow.
    """
    data = b"".join(parts(model, drop_unknown=drop_unknown, max_inside=max_inside))
    check(data)
    return data


def parts(model: Model, *, drop_unknown: bool = False, max_inside: int = MAX_INSIDE) -> Sequence[bytes | memoryview]:
    """Return the file of `model` in parts, of which large constants are the model's own memory; see `write`.

    It has not been read back: see `check`.
    """
    constants = _sizes_inside(model)
    outside = _Outside(all_buffers=sum(constants) > max_inside)
    room = _ROOM if outside.all_buffers else _ROOM + sum(constants) + _ALIGNMENT * len(constants)
    tables = _build(model, outside, room, drop_unknown)
    if not outside.chunks:
        return [tables]
    # The size of the tables does not depend on the offsets in them; now that it is known, write the offsets.
    outside = _Outside(all_buffers=outside.all_buffers, start=_align(len(tables)))
    tables = _build(model, outside, room, drop_unknown)
    return [tables, bytes(outside.start - len(tables)), *outside.chunks, bytes(_TAIL)]


def file_size(model: Model) -> int:
    """Return the number of bytes of the file of `model`; raises what `write` raises for values."""
    return sum(map(len, parts(model)))


def check(data: Readable) -> None:
    """Read a written file back.

    Raises:
        FormatError, LimitError: It would be refused.
    """
    try:
        read(data)
    except FormatError as error:
        raise type(error)(f"the file would be refused: {error}") from error


def _sizes_inside(model: Model) -> list[int]:
    """Return the bytes of each constant that need not be outside the tables."""
    try:
        buffers = [b for b in model.buffers if isinstance(b, Buffer) and not b.external]
    except _UNFIT as error:
        raise FormatError(f"{_brief(model)} does not fit: {error}", table="Model", field="buffers") from error
    return [b.data.nbytes for b in buffers if isinstance(b.data, np.ndarray)]


def _build(model: Model, outside: _Outside, room: int, drop_unknown: bool) -> memoryview:
    try:
        builder = Builder(room)
        root = _Writer(builder, outside, drop_unknown).table(layout(schema()["root"]), model)
        builder.Finish(root, file_identifier=schema()["file_identifier"].encode())
    except BuilderSizeError:
        raise LimitError("the tables take more than 2 GiB") from None
    return memoryview(builder.Bytes)[builder.Head() :]


@dataclass(slots=True)
class _Outside:
    """Bytes behind the tables: their start, and the chunks in order, padding included.

    Bytes that several buffers share in memory, as in a file that stores them once, are stored once.
    """

    all_buffers: bool
    start: int = _ALIGNMENT
    size: int = 0
    chunks: list[bytes | memoryview] = field(default_factory=list)
    places: dict[tuple[int, int], int] = field(default_factory=dict)

    def inside(self, buffer: Buffer) -> bool:
        """Return whether this buffer's bytes go into its table."""
        return not buffer.external and not (self.all_buffers and buffer.data is not None and buffer.data.size)

    def outside(self, data: Any) -> tuple[int, int]:
        """Store bytes outside the tables; return their offset from the start of the file, and their number."""
        array = _numbers(NUMBERS["uint8"], data)
        key = array.__array_interface__["data"][0], array.size
        if key not in self.places:
            self.places[key] = self.start + self.size
            padded = _align(array.size)
            self.chunks += [array.data, bytes(padded - array.size)]
            self.size += padded
        return self.places[key], array.size


class _Writer:
    """One file being written: each method appends to the builder and returns an offset in it."""

    def __init__(self, builder: Builder, outside: _Outside, drop_unknown: bool) -> None:
        self.builder, self.sink, self.drop_unknown = builder, outside, drop_unknown
        self.parameters: dict[tuple[bytes, int, int], int] = {}  # vectors of numbers that tables share

    def table(self, table: TableLayout, value: Any) -> int:
        """Write a table and everything that it points to; return its offset."""
        try:
            return self._table(table, value)
        except FormatError:
            raise
        except _UNFIT as error:
            raise FormatError(f"the value does not fit: {error}", table=table.name) from error

    def _table(self, table: TableLayout, value: Any) -> int:
        fields = self._fields(table, value)
        # In the schema's order, not the mapping's: the bytes depend only on values.
        slots = [self._slot(table, field, fields.get(name)) for name, field in table.fields.items()]
        present = [entry for group in slots for entry in group]
        present += [(u.id, _UNKNOWN, _unknown_number(u)) for u in self._unknown(table, value)]
        # Widest first leaves no gaps between fields; by id among equals, so that the layout is deterministic.
        present.sort(key=lambda entry: (-entry[1].size, entry[0]))
        self.builder.StartObject(1 + max((entry[0] for entry in present), default=-1))
        for slot, number, content in present:
            if number is _OFFSET:
                self.builder.PrependUOffsetTRelative(content)
            else:
                self.builder.Prepend(number.flags, content)
            self.builder.Slot(slot)
        return int(self.builder.EndObject())

    def _fields(self, table: TableLayout, value: Any) -> Mapping[str, Any]:
        binding = BINDINGS.get(table.name)
        record = value.table if isinstance(value, Record) else None
        if (type(value) is not binding.type) if binding else (record != table.name):
            name_given = record or type(value).__name__
            raise FormatError(f"{name_given} is in the place of {table.name}", table=table.name)
        fields: Mapping[str, Any] = dict(binding.store(value, self.sink) if binding else value.fields)
        for name in fields:
            if name not in table.fields:
                raise FormatError("the schema has no such field", table=table.name, field=name)
        return fields

    def _slot(self, table: TableLayout, field: Field, value: Any) -> list[tuple[int, Number, Any]]:
        """Return the entries of the table for one field: (slot, number type, content) of every slot it fills."""
        if value is None:
            return []
        try:
            if field.kind is FieldKind.SCALAR:
                return self._scalar(field, value)
            if field.kind is FieldKind.UNION:
                return self._union(field, value)
            return [(field.id, _OFFSET, self._reference(field, value, shared=table.name in _SHARING))]
        except FormatError:
            raise
        except _UNFIT as error:
            raise FormatError(f"{_brief(value)} does not fit: {error}", table=table.name, field=field.name) from error

    def _scalar(self, field: Field, value: Any) -> list[tuple[int, Number, Any]]:
        assert field.number is not None
        content = field.number.flags.py_type(value)
        if content != value and content == content:
            raise ValueError(f"not a {field.number.name}")
        # Bits are compared, not values: -0.0 equals 0.0 and is not the default.
        is_default = field.number.packer.pack(content) == field.number.packer.pack(field.default)
        return [] if is_default else [(field.id, field.number, content)]

    def _union(self, field: Field, value: Any) -> list[tuple[int, Number, Any]]:
        name = value.table if isinstance(value, Record) else ""
        if name not in members(field.target)[1:]:
            if self.drop_unknown:
                return []
            raise FormatError(
                f"{_brief(name)} is not a known member of {field.target}, and cannot be carried over", field=field.name
            )
        number = members(field.target).index(name)
        return [(field.id - 1, _UNION_TYPE, number), (field.id, _OFFSET, self.table(layout(name), value))]

    def _reference(self, field: Field, value: Any, *, shared: bool) -> int:
        if field.kind is FieldKind.STRING:
            return int(self.builder.CreateString(value.encode("utf-8", "surrogateescape")))
        if field.kind is FieldKind.TABLE:
            return self.table(layout(field.target), value)
        if field.kind is FieldKind.TABLES:
            if not isinstance(value, (tuple, list)):
                raise TypeError("not a tuple of tables")
            return self._tables([self.table(layout(field.target), element) for element in value])
        assert field.number is not None
        array, width = _numbers(field.number, value), field.number.size
        alignment = max(field.align, width)
        if not shared:
            return self._vector(array, width, alignment)
        key = array.tobytes(), width, alignment
        if key not in self.parameters:
            self.parameters[key] = self._vector(array, width, alignment)
        return self.parameters[key]

    def _tables(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(_OFFSET_SIZE, len(offsets), _OFFSET_SIZE)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def _vector(self, array: Array, width: int, alignment: int) -> int:
        builder = self.builder
        builder.StartVector(width, array.size, alignment)
        builder.head -= array.nbytes
        builder.Bytes[builder.head : builder.head + array.nbytes] = _bytes(array).data
        return int(builder.EndVector())

    def _unknown(self, table: TableLayout, value: Any) -> list[UnknownField]:
        """Return the fields of a table that the schema does not name, as far as another file can hold them."""
        carried = []
        for unknown in value.unknown:
            if isinstance(unknown, UnknownField) and unknown.scalar and unknown.table == table.name:
                carried.append(unknown)
            elif not self.drop_unknown:
                raise _no_unknown_field(table, unknown, "may hold an offset, and cannot be carried over")
        taken = {*table.slots, *table.type_slots}
        for unknown in carried:
            if unknown.id in taken or not 0 <= unknown.id <= _LAST_SLOT:
                raise _no_unknown_field(table, unknown, "has a number that is taken, or cannot be")
            taken.add(unknown.id)
        return carried


def _no_unknown_field(table: TableLayout, unknown: Any, reason: str) -> FormatError:
    if not isinstance(unknown, UnknownField):
        return FormatError(f"{_brief(unknown)} is not an unknown field", table=table.name)
    where = unknown.position if unknown.position >= 0 else None
    return FormatError(f"this unknown field {reason}", offset=where, table=unknown.table, field=f"id {unknown.id}")


def _numbers(number: Number, value: Any) -> Array:
    """Return the values as an array of the stored type; raise ValueError or OverflowError if one does not fit."""
    numbers = _bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else np.asarray(value)
    if numbers.ndim != 1:
        raise ValueError("not a list of numbers")
    if numbers.dtype == number.dtype:
        return numbers
    with np.errstate(all="ignore"):  # lossy conversions are refused
        stored = numbers.astype(number.dtype)
    if not np.array_equal(stored, numbers, equal_nan=numbers.dtype.kind == "f"):
        raise ValueError(f"not all are {number.name}")
    return stored


def _bytes(data: Any) -> NDArray[np.uint8]:
    """Return the memory of an array or a bytes-like object, copied only if it is not contiguous."""
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return np.frombuffer(data, np.uint8)


def _unknown_number(unknown: UnknownField) -> int:
    return int.from_bytes(unknown.inline[:8], "little")


def _align(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
