"""One case before its expected outputs are known, and the random choices that build drafts.

Build models with one operator from a short description.

Types of activations of each operator, from LiteRT's kernel tables and the facts of operators.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.rules import need
from tflq.engine.kernels.kernel import Slot
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import write
from tflq.model.ir import (
    CARRIER,
    STORED_BITS,
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
)
from tflq.model.ir.model import enum, schema
from tflq.typing import Array

OneOperatorArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class T:
    """A tensor of the model. `scale` may be one number or a sequence (then along `axis`); `value` makes it constant."""

    type: str
    shape: Sequence[int]
    scale: Any = None
    zero_point: Any = 0
    axis: int = 0
    value: Any = None
    variable: bool = False

    def spec(self, name: str, buffer: int) -> TensorSpec:
        """Return the tensor as the file describes it; its data are in that buffer."""
        quantization = None
        if self.scale is not None:
            scale = np.atleast_1d(np.asarray(self.scale, np.float32))
            zero_point = np.asarray(self.zero_point, np.int64)
            if zero_point.ndim == 0:
                zero_point = np.broadcast_to(zero_point, scale.shape)
            quantization = Quantization(scale, zero_point.copy(), self.axis)
        return TensorSpec(
            name=name,
            type=TensorType[self.type.upper()],
            shape=tuple(self.shape),
            buffer=buffer,
            quantization=quantization,
            is_variable=self.variable,
        )


def build(
    op: str,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    options: tuple[str, Mapping[str, Any]] | None = None,
    version: int = 1,
    intermediates: Sequence[T] = (),
    body: str = "",
) -> bytes:
    """Return the file of a model with one operator.

    `options` is ("AddOptions", {field: value}); None inputs are absent. Options of a custom operator are ("", {name:
    value}). `body` is the one operator of a second subgraph, for operators that read its name.
    """
    buffers = [Buffer()]
    tensors: list[TensorSpec] = []

    def add(tensor: T | None, name: str) -> int:
        if tensor is None:
            return -1
        buffer = 0
        if tensor.value is not None:
            buffers.append(Buffer(data_of(tensor)))
            buffer = len(buffers) - 1
        tensors.append(tensor.spec(name, buffer))
        return len(tensors) - 1

    inputs_at = [add(t, f"in{i}") for i, t in enumerate(inputs)]
    outputs_at = [add(t, f"out{i}") for i, t in enumerate(outputs)]
    between = [add(t, f"mid{i}") for i, t in enumerate(intermediates)]
    builtin = enum("BuiltinOperator")
    record = Record(options[0], dict(options[1])) if options and options[0] else None
    second = record is not None and record.table in in_second_union()
    operator = Operator(
        0,
        tuple(inputs_at),
        tuple(outputs_at),
        options=None if second else record,
        options_2=record if second else None,
        custom_options=bytes(flexbuffers.Dumps(dict(options[1]))) if options and not options[0] else None,
        intermediates=tuple(between) or None,
    )
    free = [i for i, t in zip(inputs_at, inputs, strict=True) if t is not None and t.value is None and not t.variable]
    codes = [OperatorCode(builtin[op], op, version) if op in builtin else OperatorCode(32, "CUSTOM", version, op)]
    graphs = [Subgraph(tuple(tensors), tuple(free), tuple(outputs_at), (operator,), "main")]
    if body:
        scalars = tuple(T("float32", ()).spec(f"body{i}", 0) for i in range(3))
        codes.append(OperatorCode(builtin[body], body))
        graphs.append(Subgraph(scalars, (0, 1), (2,), (Operator(1, (0, 1), (2,)),), "body"))
    return write(Model(3, tuple(codes), tuple(graphs), tuple(buffers)))


def in_second_union() -> frozenset[str]:
    """Return the options tables that the schema keeps in its second union."""
    return frozenset(schema()["unions"]["BuiltinOptions2"])


def data_of(tensor: T) -> OneOperatorArray:
    """Return the bytes of a constant, as the file stores them."""
    type_ = TensorType[tensor.type.upper()]
    value = np.broadcast_to(np.asarray(tensor.value, CARRIER[type_]), tuple(tensor.shape))
    bits = STORED_BITS[type_]
    if bits == 8 * value.dtype.itemsize:
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    per_byte = 8 // bits
    codes = value.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    codes = np.pad(codes, (0, -len(codes) % per_byte)).reshape(-1, per_byte)
    return np.asarray(np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1), np.uint8)


Sample = tuple[Array, ...]
#: Levels of codes, from the lowest to the highest.
_LEVELS = 8

#: Smallest and largest code by type.
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A model of one operator and its inputs. `aim` names the rounding, limit or geometry that it tests.

    A `file` is the model itself, in place of operands to build it from.
    """

    op: str
    aim: str
    inputs: tuple[T | None, ...]
    outputs: tuple[T, ...]
    samples: tuple[Sample, ...]
    options: tuple[str, Mapping[str, Any]] | None = None
    version: int = 1
    intermediates: tuple[T, ...] = ()
    file: bytes | None = None

    @property
    def key(self) -> Hashable:
        """The key of its model, which drafts that differ in samples only share."""
        return id(self.inputs) if self.file is None else self.file

    def model(self) -> bytes:
        """Return the `.tflite` file."""
        if self.file is not None:
            return self.file
        return build(self.op, self.inputs, self.outputs, self.options, self.version, self.intermediates)

    @property
    def types(self) -> str:
        """Operand types as kernel tables write them; `none` for an absent operand."""
        left = " ".join("none" if t is None else t.type for t in self.inputs)
        return f"{left} -> {' '.join(t.type for t in self.outputs)}"

    @property
    def constants(self) -> int:
        """The number of elements of all constants, which sums of many taps need."""
        return sum(int(np.size(t.value)) for t in self.inputs if t is not None and t.value is not None)


def feed(inputs: Sequence[T | None]) -> list[T]:
    """Return the operands that are inputs of the model."""
    return [t for t in inputs if t is not None and t.value is None and not t.variable]


def samples_of(rng: np.random.Generator, inputs: Sequence[T | None]) -> tuple[Sample, ...]:
    """Return uniformly distributed codes; then the lowest, the highest and the zero point only."""
    return tuple(tuple(_values(rng, t, ends) for t in feed(inputs)) for ends in (False, True))


def levels_of(rng: np.random.Generator, inputs: Sequence[T | None]) -> tuple[Sample, ...]:
    """Return codes near one level for each of eight, so that means and sums come near every code; others are random."""
    return tuple(tuple(_near(rng, t, k, place) for place, t in enumerate(feed(inputs))) for k in range(_LEVELS))


def _near(rng: np.random.Generator, tensor: T, level: int, place: int) -> Array:
    """Return codes near a level of an operand; operands beside it are near another one each time."""
    if tensor.type not in CODES:
        return _values(rng, tensor, ends=False)
    low, high = CODES[tensor.type]
    step, noise = (high - low) / (_LEVELS - 1), max(1, (high - low) // 80)
    centre = low + round(step * ((level * (1 + 2 * place)) % _LEVELS))
    codes = centre + rng.integers(-noise, noise + 1, tensor.shape)
    return np.clip(codes, low, high).astype(CARRIER[TensorType[tensor.type.upper()]])


def _values(rng: np.random.Generator, tensor: T, ends: bool) -> Array:
    dtype = CARRIER[TensorType[tensor.type.upper()]]
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, 50 if ends else 1, tensor.shape), dtype)
    if dtype.kind == "b":
        return rng.random(tensor.shape) < 0.5
    low, high = CODES.get(tensor.type, (-1000, 1000))
    if ends:
        return np.asarray(rng.choice([low, int(np.max(tensor.zero_point)), high], tensor.shape), dtype)
    return np.asarray(rng.integers(low, high + 1, tensor.shape), dtype)


def zero_point(rng: np.random.Generator, kind: str) -> int:
    """Return a zero point: any code for 8 bits, 0 for 16."""
    low, high = CODES[kind]
    return 0 if kind == "int16" else int(rng.integers(low, high + 1))


#: The profile whose tables give the operators and types.
PROFILE = "litert-ref"
#: The release of that profile as facts name it: later ones have the same versions.
RELEASE = "2.1"
KINDS = ("int8", "uint8", "int16")


@cache
def kinds(op: str) -> tuple[str, ...]:
    """Return the types of codes that an operator makes or, if it makes no codes (places, truth values), reads.

    Types of indices, weights and states do not count. Nor do types whose results in LiteRT are known to be wrong.
    """
    fact, found = OPERATORS[op], set()
    for row in by_name(PROFILE).kernels[op]:
        inputs, outputs = row.signature.inputs, row.signature.outputs
        found |= _codes(outputs[0]) or _codes(inputs[0])
    return tuple(kind for kind in KINDS if kind in found and kind not in fact.broken)


def _codes(slot: Slot) -> set[str]:
    """Return the types of codes that an operand can have; all if it takes any type."""
    return {kind for kind in KINDS if slot.types is None or TensorType[kind.upper()] in slot.types}


def version_of(op: str, kind: str) -> int:
    """Return the version that codes of a type need, unless LiteRT's reference resolver stops before it."""
    fact = OPERATORS[op]
    lowest = min(row.versions[0] for row in by_name(PROFILE).kernels[op])
    least = need(op, [TensorType[kind.upper()]])
    return max(lowest, min(least, fact.highest(RELEASE, optimized=False) or least))


def kind_of(types: str) -> str | None:
    """Return the type of codes of a case by its operand types, such as "int8 int8 -> bool"; None if it has none."""
    inputs, _, outputs = types.partition(" -> ")
    return next((words[0] for words in (outputs.split(), inputs.split()) if words[0] in KINDS), None)
