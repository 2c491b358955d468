"""From the bytes of a `.tflite` file to a Model.

Every offset is checked before it is followed, every count before it is used. A table with several references is read
once, and every object is charged to a budget proportional to the file's size. So work and memory are bounded for any
bytes. Constants and vectors of numbers are views into the file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from flatbuffers import packer
from numpy.typing import NDArray

from tflq.errors import FormatError, LimitError
from tflq.model.flatbuf.binding import BINDINGS, load_record
from tflq.model.flatbuf.layout import Field, FieldKind, ReadLimits, TableLayout, TablePlan, arrange, layout, members
from tflq.model.ir import Model, Record, UnknownField
from tflq.model.ir.model import schema
from tflq.typing import Array

Readable: TypeAlias = "bytes | bytearray | memoryview | mmap.mmap"

DEFAULT_LIMITS = ReadLimits()

_OFFSET_SIZE = 4
_VTABLE_HEAD = 4  # its own size and the table's, two bytes each
_UNKNOWN_SIZE = 8  # bytes kept of an unknown field: the widest scalar

# Memory of Python objects in bytes, as measured: these bound the memory of reading.
_TABLE_COST = 256
_FIELD_COST = 24  # per field of a table, present or not
_SLOT_COST = 96  # per slot of a vtable, once per vtable
_UNKNOWN_COST = 192
_VIEW_COST = 160
_STRING_COST = 64
_WIDE_COST = 3  # additional bytes per byte if a character is not ASCII
_ENTRY_COST = 20  # per entry of a vector of tables
_INDEX_COST = 40


def read(data: Readable, limits: ReadLimits = DEFAULT_LIMITS) -> Model:
    """Return the model in `data`, whose arrays are views of `data`.

    Raises:
        FormatError: The bytes are not a valid `.tflite` file; names byte, table and field.
        LimitError: They exceed `limits`.
    """
    reader = _reader(data, limits)
    reader.check_identifier(schema()["file_identifier"].encode())
    model: Model = reader.root(layout(schema()["root"]))
    return model


def read_record(data: Readable, format_: str, limits: ReadLimits = DEFAULT_LIMITS) -> Record:
    """Return the root table of a format without a file identifier; its arrays are views of `data`.

    `format_` names a file of `schemas/`: "layer_by_layer" for tflite-micro's dumps, "litertlm" for the header of a
    LiteRT-LM package.

    Raises:
        FormatError, LimitError: See `read`.
    """
    record: Record = _reader(data, limits).root(layout(schema(format_)["root"]))
    return record


def _reader(data: Readable, limits: ReadLimits) -> _Reader:
    view = memoryview(data).toreadonly().cast("B")
    if len(view) > limits.file_size:
        raise LimitError(f"the file has {len(view)} bytes, more than the limit of {limits.file_size}")
    return _Reader(view, limits)


class _Reader:
    """One file being read."""

    def __init__(self, view: memoryview, limits: ReadLimits) -> None:
        self.view, self.size, self.limits = view, len(view), limits
        self.memory = limits.memory_for(self.size)
        self.tables, self.elements = limits.tables, limits.elements
        self.plans: dict[tuple[str, int], TablePlan] = {}
        self.seen: dict[str, dict[int, Any]] = {}
        self.absent: dict[str, Any] = {}
        self.references: dict[FieldKind, Callable[[TableLayout, Field, int, int], Any]] = {
            FieldKind.STRING: self._string,
            FieldKind.NUMBERS: self._numbers,
            FieldKind.TABLE: self._subtable,
            FieldKind.TABLES: self._tables,
        }

    def check_identifier(self, identifier: bytes) -> None:
        """Refuse a file with another identifier behind the offset of its root."""
        if self.size < _OFFSET_SIZE + len(identifier):
            raise FormatError("too short for a .tflite file", offset=self.size)
        identifier_read = bytes(self.view[_OFFSET_SIZE : _OFFSET_SIZE + len(identifier)])
        if identifier_read != identifier:
            reason = f"not a .tflite file: identifier {identifier_read!r} instead of {identifier!r}"
            raise FormatError(reason, offset=_OFFSET_SIZE)

    def root(self, root: TableLayout) -> Any:
        """Return the root table."""
        if self.size < _OFFSET_SIZE:
            raise FormatError("too short for a file", offset=self.size)
        return self.table(root, self._follow(0, root.name, ""), 1)

    # --- tables -----------------------------------------------------------------------------------------------------

    def table(self, table: TableLayout, position: int, depth: int) -> Any:
        """Return the table at `position`, as the vocabulary's value of it."""
        known = self.seen.setdefault(table.name, {})
        if position in known:
            return known[position]
        if depth > self.limits.depth:
            raise LimitError(f"tables nest deeper than {self.limits.depth}", offset=position, table=table.name)
        plan = self._plan(table, position)
        if position + plan.size > self.size:
            raise FormatError("the table reaches beyond the file's end", offset=position, table=table.name)
        if plan.empty:
            value = self._absent(table)
        else:
            self.tables -= 1
            if self.tables < 0:
                raise LimitError(f"more than {self.limits.tables} tables", offset=position, table=table.name)
            self._charge(_TABLE_COST + _FIELD_COST * len(table.fields), position, table.name)
            value = known[position] = self._build(table, plan, position, depth)
        return value

    def _build(self, table: TableLayout, plan: TablePlan, position: int, depth: int) -> Any:
        fields = dict(table.defaults)
        for name, unpack, at in plan.scalars:
            fields[name] = unpack(self.view, position + at)[0]
        for field, at in plan.references:
            fields[field.name] = self.references[field.kind](table, field, position + at, depth)
        for field, type_at, at in plan.unions:
            fields[field.name] = self._union(table, field, position, type_at, at, depth)
        unknown = tuple(self._unknown(table, position + at, slot, gap) for slot, at, gap in plan.unknown)
        binding = BINDINGS.get(table.name)
        return binding.load(fields, unknown, self) if binding else load_record(table.name, fields, unknown)

    def _absent(self, table: TableLayout) -> Any:
        if table.name not in self.absent:
            binding = BINDINGS.get(table.name)
            self.absent[table.name] = binding.load(table.defaults, (), self) if binding else table.absent
        return self.absent[table.name]

    def _plan(self, table: TableLayout, position: int) -> TablePlan:
        if not 0 <= position <= self.size - _OFFSET_SIZE:
            raise FormatError("the table lies beyond the file's end", offset=position, table=table.name)
        vtable = position - packer.soffset.unpack_from(self.view, position)[0]
        key = table.name, vtable
        if key not in self.plans:
            self.plans[key] = self._read_vtable(table, position, vtable)
        return self.plans[key]

    def _read_vtable(self, table: TableLayout, position: int, vtable: int) -> TablePlan:
        def broken(reason: str, at: int = vtable, field: str = "") -> FormatError:
            return FormatError(reason, offset=at, table=table.name, field=field)

        if not 0 <= vtable <= self.size - _VTABLE_HEAD:
            raise broken(f"the table's description lies outside the file, at {vtable}", position)
        size, table_size = struct.unpack_from("<HH", self.view, vtable)
        if size < _VTABLE_HEAD or size % 2 or vtable + size > self.size:
            raise broken(f"a table's description cannot have {size} bytes")
        if table_size < _OFFSET_SIZE:
            raise broken(f"a table cannot have {table_size} bytes")
        offsets = struct.unpack_from(f"<{(size - _VTABLE_HEAD) // 2}H", self.view, vtable + _VTABLE_HEAD)
        self._charge(_SLOT_COST * (len(offsets) + 1), vtable, table.name)
        present = {slot: at for slot, at in enumerate(offsets) if at}
        for slot, at in present.items():
            known = table.slots.get(slot)
            width = known.number.size if known and known.kind is FieldKind.SCALAR and known.number else _OFFSET_SIZE
            if known is None:
                width = 1
            if at < _OFFSET_SIZE or at + width > table_size:
                where = vtable + _VTABLE_HEAD + 2 * slot
                raise broken("the field lies outside its table", where, known.name if known else f"id {slot}")
        return arrange(table, table_size, present)

    # --- fields -----------------------------------------------------------------------------------------------------

    def _subtable(self, table: TableLayout, field: Field, position: int, depth: int) -> Any:
        return self.table(layout(field.target), self._follow(position, table.name, field.name), depth + 1)

    def _tables(self, table: TableLayout, field: Field, position: int, depth: int) -> tuple[Any, ...]:
        start, count = self._vector(table, field, position, _OFFSET_SIZE)
        self._count_elements(count, _ENTRY_COST, position, table.name, field.name)
        element = layout(field.target)
        places = range(start, start + _OFFSET_SIZE * count, _OFFSET_SIZE)
        return tuple([self.table(element, self._follow(place, table.name, field.name), depth + 1) for place in places])

    def _union(self, table: TableLayout, field: Field, position: int, type_at: int, at: int, depth: int) -> Any:
        number = self.view[position + type_at] if type_at else 0
        if number == 0:
            return None
        known = members(field.target)
        member = known[number] if number < len(known) else None
        if member is not None:
            if not at:
                return None
            target = self._follow(position + at, table.name, field.name)
            return self.table(layout(member), target, depth + 1)
        self._charge(_TABLE_COST, position, table.name, field.name)
        inline = bytes(self.view[position + at : position + at + _OFFSET_SIZE]) if at else b""
        kept = UnknownField(table.name, field.id, inline.ljust(_UNKNOWN_SIZE, b"\0"), False, position + at)
        return Record(f"{field.target}#{number}", unknown=(kept,))

    def _numbers(self, table: TableLayout, field: Field, position: int, depth: int) -> Array:
        assert field.number is not None
        start, count = self._vector(table, field, position, field.number.size)
        self._charge(_VIEW_COST, position, table.name, field.name)
        if field.number.name == "bool":
            # A stored bool may be any byte; NumPy's must be 0 or 1, so these few bytes are copied.
            self._count_elements(count, 1, position, table.name, field.name)
            flags: NDArray[np.bool_] = np.frombuffer(self.view, np.uint8, count, start) != 0
            flags.flags.writeable = False
            return flags
        return np.frombuffer(self.view, field.number.dtype, count, start)

    def _string(self, table: TableLayout, field: Field, position: int, depth: int) -> str:
        start, count = self._vector(table, field, position, 1)
        end = start + count
        if end >= self.size or self.view[end] != 0:
            reason = "the string does not end with a zero byte"
            raise FormatError(reason, offset=end, table=table.name, field=field.name)
        self._charge(_STRING_COST + count, position, table.name, field.name)
        text = str(self.view[start:end], "utf-8", "surrogateescape")
        if not text.isascii():
            self._charge(_WIDE_COST * count, position, table.name, field.name)
        return text

    def _unknown(self, table: TableLayout, position: int, slot: int, gap: int) -> UnknownField:
        self._charge(_UNKNOWN_COST, position, table.name, f"id {slot}")
        inline = bytes(self.view[position : position + min(gap, _UNKNOWN_SIZE)]).ljust(_UNKNOWN_SIZE, b"\0")
        # If it is wider than a scalar with padding, it is a struct; and a value that points into the file may be an
        # offset.
        scalar = gap < 2 * _UNKNOWN_SIZE and not (gap >= _OFFSET_SIZE and self._may_be_offset(position, inline))
        return UnknownField(table.name, slot, inline, scalar, position)

    def _may_be_offset(self, position: int, inline: bytes) -> bool:
        distance = packer.uoffset.unpack_from(inline)[0]
        aligned = position % _OFFSET_SIZE == 0 and distance % _OFFSET_SIZE == 0
        return bool(distance and aligned and position + distance + _OFFSET_SIZE <= self.size)

    # --- what the binding asks for ----------------------------------------------------------------------------------

    def integers(self, vector: Array) -> tuple[int, ...]:
        """Return the vector as a tuple of Python numbers."""
        self._count_elements(vector.size, _INDEX_COST, None, "", "")
        return tuple(vector.tolist())

    def outside(self, offset: int, size: int, table: str, field: str) -> memoryview:
        """Return bytes outside the tables, `offset` counted from the start of the file."""
        if offset + size > self.size:
            reason = f"the file is cut off or damaged: {size} bytes at {offset} reach beyond the file's end"
            raise FormatError(reason, table=table, field=field)
        self._charge(_VIEW_COST, offset, table, field)
        return self.view[offset : offset + size]

    # --- checked steps ----------------------------------------------------------------------------------------------

    def _follow(self, position: int, table: str, field: str) -> int:
        """Return the target of the offset at `position`, where four bytes can be read."""
        distance = packer.uoffset.unpack_from(self.view, position)[0]
        target: int = position + distance
        if distance == 0 or target > self.size - _OFFSET_SIZE:
            beyond = f"is cut off or damaged: it ends before byte {target:,}, which it refers to"
            reason = f"the file {beyond if distance else 'is damaged: an offset is 0'}"
            raise FormatError(reason, offset=position, table=table, field=field)
        return target

    def _vector(self, table: TableLayout, field: Field, position: int, width: int) -> tuple[int, int]:
        """Return first byte and count of the vector at the offset in `position`, all inside the file."""
        target = self._follow(position, table.name, field.name)
        count = packer.uoffset.unpack_from(self.view, target)[0]
        start = target + _OFFSET_SIZE
        if start + count * width > self.size:
            reason = f"the file is cut off or damaged: {count} elements of {width} bytes reach beyond the file's end"
            raise FormatError(reason, offset=target, table=table.name, field=field.name)
        return start, count

    def _count_elements(self, count: int, cost: int, position: int | None, table: str, field: str) -> None:
        self.elements -= count
        if self.elements < 0:
            reason = f"more than {self.limits.elements} list entries"
            raise LimitError(reason, offset=position, table=table, field=field)
        self._charge(count * cost, position, table, field)

    def _charge(self, cost: int, position: int | None, table: str, field: str = "") -> None:
        self.memory -= cost
        if self.memory < 0:
            allowed = self.limits.memory_for(self.size)
            reason = f"the file's objects take more than {allowed} bytes, too much for a file of {self.size}"
            raise LimitError(reason, offset=position, table=table, field=field)
