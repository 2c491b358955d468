"""Build models with one operator from a short description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

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
from tflq.model.ir.schema import enum, schema

Array = np.ndarray[Any, Any]


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


def data_of(tensor: T) -> Array:
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
