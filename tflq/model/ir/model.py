"""The vocabulary: the contents of a `.tflite` file as plain immutable values without behaviour.

Field names are the schema's (LiteRT `schema.fbs`), which its readers know. Indices stay indices: a model is a faithful
picture of its file. Contents that this version does not know are kept in `unknown` until they are executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.display import display_by
from tflq.model.ir.types import TensorType

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


@display_by("inspect.cards:model_card")
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
