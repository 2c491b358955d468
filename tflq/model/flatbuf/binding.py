"""Tables with a class of their own in the vocabulary, and the correspondence of the two, in one table.

A class and its table correspond by the names of their fields; a `Binding` states what differs. The place of bytes in a
file is not part of the vocabulary: reading takes those outside the tables from a FileSource, writing hands them to a
FileSink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from tflq.model import ir
from tflq.model.ir.model import enum, enum_names
from tflq.typing import Array

Fields = Mapping[str, Any]
Unknown = tuple[ir.UnknownField, ...]
Values = dict[str, Any]


class FileSource(Protocol):
    """The operations that `load` needs on the file that is read."""

    def integers(self, vector: Array) -> tuple[int, ...]:
        """Return the vector as a tuple of Python numbers."""

    def outside(self, offset: int, size: int, table: str, field: str) -> memoryview:
        """Return bytes outside the tables, `offset` counted from the start of the file."""


class FileSink(Protocol):
    """The operations that `store` needs on the file that is written."""

    def inside(self, buffer: ir.Buffer) -> bool:
        """Return whether this buffer's bytes go into its table."""

    def outside(self, data: Any) -> tuple[int, int]:
        """Store bytes outside the tables; return their offset from the start of the file, and their number."""


class Binding:
    """A class of the vocabulary and its table: values from fields, and fields from values.

    Fields correspond by name, except `names` (own name: the table's); those of `own` are no fields of the table.
    `reads` (value, source) and `writes` (value) convert single fields, by own name. `adjust` then changes the values
    that are read (with the table's fields and the source), `complete` the fields that are written (with the value and
    the sink).
    """

    def __init__(
        self,
        type_: type,
        *,
        names: Mapping[str, str] = MappingProxyType({}),
        own: Sequence[str] = (),
        reads: Mapping[str, Callable[[Any, FileSource], Any]] = MappingProxyType({}),
        writes: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
        adjust: Callable[[Values, Fields, FileSource], None] | None = None,
        complete: Callable[[Values, Any, FileSink], None] | None = None,
    ) -> None:
        self.type = type_
        bound = [field.name for field in fields(type_) if field.name not in ("unknown", *own)]
        self._reads = [(name, names.get(name, name), reads.get(name)) for name in bound]
        self._writes = [(name, names.get(name, name), writes.get(name)) for name in bound]
        self._adjust, self._complete = adjust, complete

    def load(self, table: Fields, unknown: Unknown, source: FileSource) -> Any:
        """Build a value from a table's fields, by schema name, and its unknown fields."""
        values: Values = {"unknown": unknown}
        for name, stored, read in self._reads:
            values[name] = table[stored] if read is None else read(table[stored], source)
        if self._adjust is not None:
            self._adjust(values, table, source)
        return self.type(**values)

    def store(self, value: Any, sink: FileSink) -> Fields:
        """Return a table's fields of a value."""
        table: Values = {}
        for name, stored, write in self._writes:
            table[stored] = getattr(value, name) if write is None else write(getattr(value, name))
        if self._complete is not None:
            self._complete(table, value, sink)
        return table


@dataclass(frozen=True, slots=True)
class Pair:
    """A table that the vocabulary holds as a plain pair."""

    first: str | None
    second: int
    unknown: Unknown


def load_record(table: str, fields: Fields, unknown: Unknown) -> ir.Record:
    """Return a table without a class of its own."""
    return ir.Record(table, MappingProxyType(dict(fields)), unknown)


# --- single fields --------------------------------------------------------------------------------------------------


def _indices(vector: Array | None, source: FileSource) -> tuple[int, ...] | None:
    return None if vector is None else source.integers(vector)


def _all_indices(vector: Array | None, source: FileSource) -> tuple[int, ...]:
    return _indices(vector, source) or ()


def _flags(vector: Array | None, source: FileSource) -> tuple[bool, ...] | None:
    return None if vector is None else tuple(map(bool, source.integers(vector)))


def _all(values: tuple[Any, ...] | None, source: FileSource) -> tuple[Any, ...]:
    return values or ()


def _floats(values: Array | None, source: FileSource) -> Array:
    return _NO_FLOATS if values is None else values


def _integers(values: Array | None, source: FileSource) -> Array:
    return _NO_INTEGERS if values is None else values


_NO_FLOATS = np.zeros(0, np.float32)
_NO_INTEGERS = np.zeros(0, np.int64)
_NO_FLOATS.flags.writeable = _NO_INTEGERS.flags.writeable = False


def _unless_empty(values: Array) -> Array | None:
    return values if np.size(values) else None


_TENSOR_TYPES = {int(t): t for t in ir.TensorType}


def _tensor_type(number: int, source: FileSource) -> ir.TensorType | int:
    return _TENSOR_TYPES.get(number, number)


def _named(pairs: tuple[Pair, ...] | None, source: FileSource) -> tuple[tuple[str, int], ...]:
    # Source: LiteRT 2.3 GetMapFromTensorMap: an entry without a name is skipped.
    return tuple((p.first, p.second) for p in pairs or () if p.first is not None)


def _unpaired(pairs: tuple[Pair, ...] | None, source: FileSource) -> tuple[tuple[str | None, int], ...] | None:
    return None if pairs is None else tuple((p.first, p.second) for p in pairs)


def _paired(values: tuple[tuple[str | None, int], ...] | None) -> tuple[Pair, ...] | None:
    return None if values is None else tuple(Pair(first, second, ()) for first, second in values)


def _all_named(values: tuple[tuple[str | None, int], ...]) -> tuple[Pair, ...] | None:
    if any(name is None for name, _ in values):
        raise ValueError("readers skip an entry without a name")
    return _paired(values)


def _unknown_of(*names: str) -> Callable[[Values, Fields, FileSource], None]:
    """Return an `adjust` that keeps the unknown fields of pairs, which the vocabulary holds as plain tuples."""

    def adjust(values: Values, table: Fields, source: FileSource) -> None:
        values["unknown"] += tuple(field for name in names for pair in table[name] or () for field in pair.unknown)

    return adjust


# --- tables that differ from their classes --------------------------------------------------------------------------

#: Offsets up to this one mean "not stored outside"; converters write 1 before they know the place.
_NO_OFFSET = 1


def _name_code(values: Values, table: Fields, source: FileSource) -> None:
    # Source: LiteRT 2.3 GetBuiltinCode: old files fill the byte, new ones both, and the larger is valid.
    values["builtin_code"] = max(table["builtin_code"], table["deprecated_builtin_code"])
    values["name"] = _operator_name(values["builtin_code"])


def _operator_name(code: int) -> str:
    return enum_names("BuiltinOperator").get(code, f"BUILTIN_{code}")


def _write_both_codes(table: Values, code: ir.OperatorCode, sink: FileSink) -> None:
    if code.name != _operator_name(code.builtin_code):  # the file holds only the number
        raise ValueError(f"{code.builtin_code} is {_operator_name(code.builtin_code)}")
    placeholder = enum("BuiltinOperator")["PLACEHOLDER_FOR_GREATER_OP_CODES"]
    table["deprecated_builtin_code"] = min(code.builtin_code, placeholder)


def _find_options(values: Values, table: Fields, source: FileSource) -> None:
    offset, size = table["large_custom_options_offset"], table["large_custom_options_size"]
    external = values["custom_options"] is None and offset > _NO_OFFSET
    if external:
        values["custom_options"] = source.outside(offset, size, "Operator", "large_custom_options_offset")
    values["custom_options_external"] = external


def _place_options(table: Values, op: ir.Operator, sink: FileSink) -> None:
    external = op.custom_options_external and op.custom_options is not None
    offset, size = sink.outside(op.custom_options) if external else (0, 0)
    table |= {"large_custom_options_offset": offset, "large_custom_options_size": size}
    if external:
        table["custom_options"] = None


def _find_bytes(values: Values, table: Fields, source: FileSource) -> None:
    # Source: LiteRT 2.3 InterpreterBuilder::ParseTensors: bytes in the table come first, then an offset above 1.
    if values["data"] is None and table["offset"] > _NO_OFFSET:
        data = source.outside(table["offset"], table["size"], "Buffer", "offset")
        values |= {"data": np.frombuffer(data, np.uint8), "external": True}


def _place_bytes(table: Values, buffer: ir.Buffer, sink: FileSink) -> None:
    if buffer.data is not None and not sink.inside(buffer):
        table["data"] = None
        table["offset"], table["size"] = sink.outside(buffer.data)


#: Every table with a class of its own, by its schema name.
BINDINGS: Mapping[str, Binding] = MappingProxyType(
    {
        "OperatorCode": Binding(ir.OperatorCode, own=["name"], adjust=_name_code, complete=_write_both_codes),
        "QuantizationParameters": Binding(
            ir.Quantization,
            reads={"scale": _floats, "zero_point": _integers},
            writes={"scale": _unless_empty, "zero_point": _unless_empty},
        ),
        "Tensor": Binding(
            ir.TensorSpec,
            reads={"type": _tensor_type, "shape": _all_indices, "shape_signature": _indices},
            writes={"type": int},
        ),
        "Operator": Binding(
            ir.Operator,
            names={"options": "builtin_options", "options_2": "builtin_options_2"},
            own=["custom_options_external"],
            reads={
                "inputs": _all_indices,
                "outputs": _all_indices,
                "intermediates": _indices,
                "mutating_variable_inputs": _flags,
                "custom_options": lambda data, source: None if data is None else memoryview(data),
            },
            adjust=_find_options,
            complete=_place_options,
        ),
        "SubGraph": Binding(
            ir.Subgraph, reads={"tensors": _all, "operators": _all, "inputs": _all_indices, "outputs": _all_indices}
        ),
        "Buffer": Binding(ir.Buffer, own=["external"], adjust=_find_bytes, complete=_place_bytes),
        "TensorMap": Binding(Pair, names={"first": "name", "second": "tensor_index"}),
        "Metadata": Binding(Pair, names={"first": "name", "second": "buffer"}),
        "SignatureDef": Binding(
            ir.SignatureDef,
            reads={"inputs": _named, "outputs": _named},
            writes={"inputs": _all_named, "outputs": _all_named},
            adjust=_unknown_of("inputs", "outputs"),
        ),
        "Model": Binding(
            ir.Model,
            reads={
                "operator_codes": _all,
                "subgraphs": _all,
                "buffers": _all,
                "metadata_buffer": _indices,
                "metadata": _unpaired,
            },
            writes={"metadata": _paired},
            adjust=_unknown_of("metadata"),
        ),
    }
)
