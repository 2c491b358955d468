"""Element by element operators of float32 by XNNPACK on x86-64.

XNNPACK reads subnormal numbers as zeros of their sign and writes zeros where a result, rounded, would be subnormal.
Where no activation is fused nothing is clamped: infinities stay.
Operands, options and refusals: the reference rows of each operator.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBinaryNode, VisitUnaryNode; XNNPACK's f32 vbinary, vclamp, vlrelu, vprelu,
vrnd, and functions of tflq/engine/numerics/xnnpack_functions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.delegation import delegate, has_shape, row_of
from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.families.unary import eval_loop
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.table import Rows
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.flushing import subnormals_as_zeros, to_normal_float32
from tflq.engine.numerics.xnnpack_functions import Elementwise
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Float32 operands, subnormals read as zeros, to the exact result or to its value in float64.
Function = Callable[..., Array]

#: All that the reference has: versions are looked up there.
_VERSIONS = (1, 16)
#: The fused activations that XNNPACK has: none, RELU, RELU_N1_TO_1, RELU6.
_ACTIVATIONS = 3


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    function: Function
    clamp: NumberClamp  # None if it is open


@dataclass(frozen=True, slots=True, eq=False)
class SlopeData:
    """Constants of LEAKY_RELU; PRELU's slope is an operand."""

    alpha: np.float32 | None
    is_negative: Callable[[Array], Array]


def takes(node: Node) -> bool:
    """Return whether all operands are floats of ranks that XNNPACK knows, none empty, and it has the activation."""
    present = [operand for operand in node.inputs if operand is not None]
    return (
        all(operand.type == TensorType.FLOAT32 and has_shape(operand) for operand in present)
        and int(node.options.get("fused_activation_function", 0)) <= _ACTIVATIONS
    )


def takes_constant_slope(node: Node) -> bool:
    """Return whether XNNPACK takes the node: `takes` holds and the slope is constant."""
    return takes(node) and node.input(1).is_constant


def _data(function: Function, low: float | None, high: float | None) -> OpData:
    return OpData(function, NumberClamp(*(None if limit is None else np.float32(limit) for limit in (low, high))))


def evaluate(data: OpData, *inputs: Array) -> Array:
    """Rounding: once, then tiny results to zero. NaN passes the clamp, and so does -0 at a limit of 0."""
    with np.errstate(all="ignore"):
        out = to_normal_float32(data.function(*(subnormals_as_zeros(x).astype(np.float64) for x in inputs)))
    low, high = data.clamp
    if low is not None:
        out = np.where(low > out, low, out)
    if high is not None:
        out = np.where(high < out, high, out)
    return out


def eval_slope(data: SlopeData, x: Array, slope: Array | None = None) -> Array:
    """Rounding: once. Numbers that are not negative, subnormals among them, are copied."""
    read = subnormals_as_zeros(x)
    alpha = subnormals_as_zeros(np.asarray(data.alpha if slope is None else slope, np.float32))
    with np.errstate(all="ignore"):
        return np.where(data.is_negative(read), to_normal_float32(read.astype(np.float64) * alpha), x)


def computing(op: str, reference: Rows, function: Function, operands: int = 2) -> Kernel:
    """Return the row of an operator that computes `function` and clamps to the fused activation."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shapes = row_of(node, reference).prepare(node, arithmetic).shapes
        return Prepared(shapes, _data(function, *limits(node)), evaluate)

    return _row(op, operands, prepare)


def applying(op: str, reference: Rows, choose: Callable[[Node, Arithmetic], Elementwise | None]) -> Kernel:
    """Return the row of an operator that computes the chosen function of each element, or the reference's if None."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared, function = row_of(node, reference).prepare(node, arithmetic), choose(node, arithmetic)
        return prepared if function is None else Prepared(prepared.shapes, function, eval_loop)

    return _row(op, 1, prepare)


def clamping(op: str, reference: Rows, low: float, high: float | None) -> Kernel:
    """Return the row of an operator that is a clamp."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shapes = row_of(node, reference).prepare(node, arithmetic).shapes
        return Prepared(shapes, _data(np.positive, low, high), evaluate)

    return _row(op, 1, prepare)


def sloping(op: str, reference: Rows, operands: int) -> Kernel:
    """Return the row of LEAKY_RELU, whose slope is an option, or PRELU, whose slope is an operand."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        alpha = node.options.get("alpha")
        data = SlopeData(None if alpha is None else np.float32(alpha), arithmetic.xnnpack_negative)
        return Prepared(row_of(node, reference).prepare(node, arithmetic).shapes, data, eval_slope)

    return _row(op, operands, prepare, takes if operands == 1 else takes_constant_slope)


def _row(
    op: str, operands: int, prepare: Callable[[Node, Arithmetic], Prepared], taken: Callable[[Node], bool] = takes
) -> Kernel:
    types = " ".join(["float32"] * operands)
    return delegate(Kernel(op, f"{types} -> float32", prepare, _VERSIONS), taken)
