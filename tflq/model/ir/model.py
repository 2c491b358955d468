"""The vocabulary: the contents of a `.tflite` file as plain immutable values without behaviour.

Element types of tensors.

Source: LiteRT `tflite/converter/schema/schema.fbs`, enum TensorType.

Field names are the schema's (LiteRT `schema.fbs`), which its readers know. Indices stay indices: a model is a faithful
picture of its file. Contents that this version does not know are kept in `unknown` until they are executed.

The `.tflite` wire format as data: the one loader of `schemas/tflite.json`.

The vocabulary (enums) and the codec both read it from here, so that each name or number is defined once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from importlib import resources
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.texts import display_by


class TensorType(IntEnum):
    """Element type of a tensor, with the schema's numbers."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22

    @property
    def label(self) -> str:
        """Lower-case name, as in kernel signatures and reports: `int8`."""
        return self.name.lower()


#: dtype of the arrays for a tensor of that type. Sub-byte integers are unpacked to one element per byte; bfloat16 and
#: float8 are raw bits; strings are objects (bytes).
CARRIER: dict[TensorType, np.dtype[np.generic]] = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.STRING: np.dtype(object),
    TensorType.BOOL: np.dtype(np.bool_),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.COMPLEX64: np.dtype(np.complex64),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.COMPLEX128: np.dtype(np.complex128),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.RESOURCE: np.dtype(object),
    TensorType.VARIANT: np.dtype(object),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT16: np.dtype(np.uint16),
    TensorType.INT4: np.dtype(np.int8),
    TensorType.BFLOAT16: np.dtype(np.uint16),
    TensorType.INT2: np.dtype(np.int8),
    TensorType.UINT4: np.dtype(np.uint8),
    TensorType.FLOAT8_E4M3FN: np.dtype(np.uint8),
    TensorType.FLOAT8_E5M2: np.dtype(np.uint8),
}

#: Bits of one stored element, for types that a buffer holds as a plain array.
STORED_BITS: dict[TensorType, int] = {
    **{t: 8 * d.itemsize for t, d in CARRIER.items() if d != np.dtype(object)},
    TensorType.INT4: 4,
    TensorType.INT2: 2,
    TensorType.UINT4: 4,
}


def stored_bytes(type_: TensorType | int, shape: Iterable[int]) -> int:
    """Return the bytes of a dense tensor's elements, packed below a byte; 0 for text and for unknown types."""
    bits = STORED_BITS.get(type_, 0) if isinstance(type_, TensorType) else 0
    return -(-prod(shape) * bits // 8)


_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that the schema data does not name, in a table of the schema.

    `inline` is its first eight bytes, zero-extended if the file has fewer before the next field: enough for any scalar.
    `scalar` is set if they cannot be an offset into the file, so that another file can hold them, too. `position` is
    their place in the file.
    """

    table: str
    id: int
    inline: bytes
    scalar: bool
    position: int = field(default=-1, compare=False)


class MissingField(KeyError):
    """A table lacks a field of that name: for example, an operator has another operator's options."""

    def __init__(self, table: str, name: str) -> None:
        self.table, self.name = table, name
        super().__init__(name)


@dataclass(frozen=True, slots=True)
class Record:
    """One table that has no class of its own here (options, sparsity ...), by its schema name.

    `fields` holds every field of the schema's table, absent scalars at their schema default, absent
    vectors, strings and sub-tables as None. Sub-tables are Records, vectors of numbers NumPy views. An option table
    whose type number the schema's union does not know is a Record named "Union#number" without fields.
    """

    table: str
    fields: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    unknown: tuple[UnknownField, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return the field's value. Raise MissingField if the table has no such field."""
        try:
            return self.fields[name]
        except KeyError:
            raise MissingField(self.table, name) from None

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field's value, or `default` if the table has no such field."""
        return self.fields.get(name, default)


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """The identity of an operator: `builtin_code` is the larger of the file's two codes, `name` its upper-case name.

    For a custom operator `name` is "CUSTOM" and `custom_code` its own name; an unknown number gives "BUILTIN_<n>".
    """

    builtin_code: int
    name: str
    version: int = 1
    custom_code: str | None = None
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """real = scale * (code - zero_point); C scales lie along dimension `quantized_dimension` (C = 1: per tensor)."""

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int64]
    quantized_dimension: int = 0
    min: NDArray[np.float32] | None = None
    max: NDArray[np.float32] | None = None
    details: Record | None = None
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TensorSpec:
    """One tensor of a subgraph. `buffer` indexes Model.buffers (0: no data); `shape_signature` may hold -1."""

    name: str | None
    type: TensorType | int
    shape: tuple[int, ...]
    buffer: int = 0
    quantization: Quantization | None = None
    is_variable: bool = False
    sparsity: Record | None = None
    shape_signature: tuple[int, ...] | None = None
    has_rank: bool = False
    variant_tensors: tuple[Record, ...] | None = None
    external_buffer: int = 0
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One step of a subgraph. Tensor indices, -1 for an absent optional one.

    `custom_options_external` is set if the custom options are outside the tables, as in files above 2 GiB.
    """

    opcode_index: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Record | None = None
    options_2: Record | None = None
    custom_options: memoryview | bytes | None = None
    custom_options_format: int = 0
    custom_options_external: bool = False
    mutating_variable_inputs: tuple[bool, ...] | None = None
    intermediates: tuple[int, ...] | None = None
    debug_metadata_index: int = -1
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """A graph: tensors, its inputs and outputs, and operators in execution order."""

    tensors: tuple[TensorSpec, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]
    name: str | None = None
    debug_metadata_index: int = -1
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Bytes of a constant: a read-only uint8 view into the file, or None if the file stores none.

    `external` is set if the bytes are outside the tables (fields `offset`, `size`), as in files above 2 GiB.
    """

    data: NDArray[np.uint8] | None = None
    external: bool = False
    unknown: tuple[UnknownField, ...] = ()


@dataclass(frozen=True, slots=True)
class SignatureDef:
    """Names for a subgraph's inputs and outputs: pairs of (name, tensor index); nameless entries are dropped."""

    signature_key: str | None
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    subgraph_index: int = 0
    deprecated_tag: str | None = None
    unknown: tuple[UnknownField, ...] = ()


@display_by("cards:model_card")
@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A whole `.tflite` file. `metadata` holds pairs of (name, buffer index)."""

    version: int
    operator_codes: tuple[OperatorCode, ...]
    subgraphs: tuple[Subgraph, ...]
    buffers: tuple[Buffer, ...]
    description: str | None = None
    metadata_buffer: tuple[int, ...] | None = None
    metadata: tuple[tuple[str | None, int], ...] | None = None
    signature_defs: tuple[SignatureDef, ...] | None = None
    external_buffer_groups: tuple[Record, ...] | None = None
    external_buffers: tuple[Record, ...] | None = None
    unknown: tuple[UnknownField, ...] = ()


def data_text(name: str) -> str:
    """Return the text of a file of `schemas/`: in an installed wheel, or next to the package in a checkout."""
    packed = resources.files("tflq") / "schemas" / name
    if packed.is_file():
        return packed.read_text(encoding="utf-8")
    return (Path(__file__).resolve().parents[3] / "schemas" / name).read_text(encoding="utf-8")


@cache
def schema(name: str = "tflite") -> dict[str, Any]:
    """Return the parsed schema of a format: enums, unions and tables. Treat as read-only."""
    parsed: dict[str, Any] = json.loads(data_text(f"{name}.json"))
    return parsed


@cache
def enum(name: str) -> Mapping[str, int]:
    """Return the numbers of an enum by their names, such as enum("Padding")["VALID"]."""
    return MappingProxyType(schema()["enums"][name]["values"])


@cache
def enum_names(name: str) -> Mapping[int, str]:
    """Return the names of an enum by their numbers."""
    return MappingProxyType({number: label for label, number in enum(name).items()})


def in_words(table: str, field: str, value: object) -> object:
    """Return a field's number as the schema's word for it: in_words("Conv2DOptions", "padding", 0) is "SAME".

    Other values are returned unchanged: fields that are not enums, numbers without a name, unknown tables.
    """
    kind = schema()["tables"].get(table, {}).get(field, (0, ""))[1]
    if isinstance(kind, str) and kind in schema()["enums"] and isinstance(value, int) and not isinstance(value, bool):
        return enum_names(kind).get(int(value), value)
    return value
