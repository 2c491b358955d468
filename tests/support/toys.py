"""Models and kernels so small that every value can be told by looking: the interpreter is tested with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.table import table
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import PROFILES, Profile
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    SignatureDef,
    Subgraph,
    TensorSpec,
    TensorType,
)
from tflq.typing import Array


def tensor(type_: TensorType = TensorType.INT32, shape: Sequence[int] = (2,), **more: Any) -> TensorSpec:
    return TensorSpec(more.pop("name", None), type_, tuple(shape), **more)


def quantized(scale: float, zero_point: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))


def graph(
    tensors: Sequence[TensorSpec],
    operators: Sequence[tuple[str, Sequence[int], Sequence[int]]],
    inputs: Sequence[int],
    outputs: Sequence[int],
    buffers: Sequence[bytes] = (),
    signatures: Sequence[SignatureDef] = (),
) -> Model:
    """A model with one subgraph; operators are (name, inputs, outputs), `buffers` begin at number 1."""
    names = sorted({name for name, _, _ in operators})
    named = [t if t.name is not None else replace(t, name=f"t{i}") for i, t in enumerate(tensors)]
    steps = [Operator(names.index(name), tuple(i), tuple(o)) for name, i, o in operators]
    return Model(
        version=3,
        operator_codes=tuple(OperatorCode(1000 + i, name) for i, name in enumerate(names)),
        subgraphs=(Subgraph(tuple(named), tuple(inputs), tuple(outputs), tuple(steps)),),
        buffers=(Buffer(), *(Buffer(np.frombuffer(b, np.uint8)) for b in buffers)),
        signature_defs=tuple(signatures),
    )


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def _copy(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x: x)


def _double(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x: x + x)


def _add(node: Node, arithmetic: Arithmetic) -> Prepared:
    shape = np.broadcast_shapes(node.input(0).shape, node.input(1).shape)
    return Prepared((shape,), None, lambda data, x, y: x + y)


def _ones(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Ones, of a shape that an operand's value gives."""
    shape = tuple(int(d) for d in node.constant(0))
    return Prepared((shape,), shape, lambda data, x: np.ones(data, np.int32))


def _positive(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The positive elements: how many, only the run can tell."""
    return Prepared((None,), None, lambda data, x: x[x > 0])


def _accumulate(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The sum of what came so far; the second operand is a variable. Output and variable share their memory."""

    def total(data: object, x: Array, before: Array) -> tuple[Array, Array]:
        after = before + x
        return after, after

    return Prepared((node.input(0).shape,), None, total, updates=(1,))


def _two(node: Node, arithmetic: Arithmetic) -> Prepared:
    shape = node.input(0).shape
    return Prepared((shape, shape), None, lambda data, x: (x, -x))


def _optional(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x, y: x if y is None else x + y)


def _sum(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Of all elements, as the NumPy scalar that a reduction gives."""
    return Prepared(((),), None, lambda data, x: x.sum(dtype=x.dtype))


def _broken_prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    raise KeyError("missing")


def _broken_eval(node: Node, arithmetic: Arithmetic) -> Prepared:
    def fail(data: object, x: Array) -> Array:
        raise IndexError("out of range")

    return Prepared((node.input(0).shape,), None, fail)


def _wrong_shape(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x: x[:1])


def _wrong_type(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x: x.astype(np.float32))


def _swapped_bytes(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x: x.astype(x.dtype.newbyteorder("S")))


def _update(change: Callable[[Array], Array]) -> Callable[[Node, Arithmetic], Prepared]:
    """The first operand as it is; the second, a variable, becomes `change` of what it was."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        return Prepared((node.input(0).shape,), None, lambda data, x, before: (x, change(before)), updates=(1,))

    return prepare


def _wrong_count(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared((node.input(0).shape,), None, lambda data, x: (x, x, x))


def _huge(node: Node, arithmetic: Arithmetic) -> Prepared:
    return Prepared(((1 << 20, 1 << 20),), None, lambda data, x: np.zeros((1 << 20, 1 << 20), np.int8))


PROFILE = Profile(
    name="toys",
    source=PROFILES["litert-ref"].source,
    arithmetic=PROFILES["litert-ref"].arithmetic,
    kernels=table(
        (
            Kernel("COPY", "any -> any", _copy),
            Kernel("DOUBLE", "any -> any", _double),
            Kernel("ADD", "any any -> any", _add),
            Kernel("ONES", "int32 -> int32", _ones, shape_operands=(0,)),
            Kernel("POSITIVE", "int32 -> int32", _positive),
            Kernel("ACCUMULATE", "any any -> any", _accumulate),
            Kernel("TWO", "any -> any any", _two),
            Kernel("OPTIONAL", "any any? -> any", _optional),
            Kernel("BROKEN_PREPARE", "any -> any", _broken_prepare),
            Kernel("BROKEN_EVAL", "any -> any", _broken_eval),
            Kernel("WRONG_SHAPE", "any -> any", _wrong_shape),
            Kernel("WRONG_TYPE", "any -> any", _wrong_type),
            Kernel("SWAPPED_BYTES", "any -> any", _swapped_bytes),
            Kernel("UPDATE_SHAPE", "any any? -> any", _update(lambda before: before[:1])),
            Kernel("UPDATE_TYPE", "any any? -> any", _update(lambda before: before.astype(np.float64))),
            Kernel("WRONG_COUNT", "any -> any", _wrong_count),
            Kernel("HUGE", "any -> any", _huge),
            Kernel("SUM", "any -> any", _sum),
            Kernel("VERSIONED", "int8 -> int8", _copy, versions=(2, 3)),
        )
    ),
)
