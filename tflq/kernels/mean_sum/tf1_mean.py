"""MEAN of r1.15 on 8 bits.

| operand | shape                | types       | quantization          |
|---------|----------------------|-------------|-----------------------|
| x       | any; int8: N,H,W,C   | uint8, int8 | per tensor            |
| axes    | any; int8: 1 and 2   | int32       |                       |
| y       | x without, or with 1 | as x        | per tensor            |

Options: keep_dims.
uint8 divides plain codes where both quantizations are equal; else it works in float32, is half a step too high, and
wraps. int8 rescales the sum before it divides; its loops know only four dimensions and the two in their middle.
Source: TensorFlow r1.15 lite/kernels/reduce.cc EvalMean; reference_ops.h Mean, QuantizedMeanOrSum;
reference/integer_ops/mean.h Mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape, valid
from tflq.kernels.validity import tf1
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.numerics.stages import OutputStage, type_range


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of a mean in float32."""

    reduced: Reduced
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # LSB of output: the input's zero point, and half a step
    zero_point: ZeroPoint  # LSB of output


@dataclass(frozen=True, slots=True, eq=False)
class IntegerData:
    """Constants of int8."""

    reduced: Reduced
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    stage: OutputStage  # LSB of input -> LSB of output
    zero_point: ZeroPoint  # LSB of output


def same_quantization(node: Node) -> bool:
    """Whether input and output have the same scale and zero point."""
    x, y = node.input(0), node.outputs[0]
    return bool(x.scale == y.scale) and x.zero_point == y.zero_point


def prepare_general(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The quotient of scales and all that follows is float32."""
    reduced = reduced_axes(node)
    _check_count(node, reduced)
    if same_quantization(node):
        return Prepared((reduced.shape,), reduced, eval_codes)
    return Prepared((reduced.shape,), float_data(node, reduced), eval_float)


def _check_count(node: Node, reduced: Reduced) -> None:
    if reduced.count == 0:
        raise UndefinedResultError("Mean", "a mean of no elements")


def float_data(node: Node, reduced: Reduced) -> FloatData:
    """Every step rounded to float32: the quotient, its product with the zero point, half a step added."""
    x, y = node.input(0), node.outputs[0]
    scale = x.scale / y.scale
    return FloatData(reduced, scale, np.float32(-x.zero_point) * scale + np.float32(0.5), y.zero_point)


def eval_codes(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: Mean<T, int>. Rounding: the quotient towards zero."""
    sums = sum_int32(reduced.rows(x))
    quotients = np.sign(sums) * (np.abs(sums) // reduced.count)
    return np.asarray(quotients, x.dtype).reshape(reduced.shape)


def eval_float(data: FloatData, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: quotient, product and sum to float32, then half away. Overflow: wraps."""
    means = sum_int32(data.reduced.rows(x)).astype(np.float32) / np.float32(data.reduced.count)
    return rescaled(means, data).astype(x.dtype).reshape(data.reduced.shape)


def rescaled(means: Array, data: FloatData) -> Array:
    """Float32 means of codes -> LSB of output as int32, not yet narrowed. Rounding: half away."""
    codes: Array = floats_to_int32(nearest_half_away(means * data.scale + data.bias)) + np.int32(data.zero_point)
    return codes


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The real multiplier is a float64 quotient. Forms that the loops do not know leave outputs unwritten."""
    x, y = node.input(0), node.outputs[0]
    reduced = check_image(node)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    return Prepared(
        (reduced.shape,), IntegerData(reduced, ZeroPoint(x.zero_point * reduced.count), stage, y.zero_point), eval_int8
    )


def check_image(node: Node) -> Reduced:
    """Return the reduced axes; refuse shapes that the four-dimensional loops over height and width do not expect."""
    x, reduced = node.input(0), reduced_axes(node)
    _check_count(node, reduced)
    if len(x.shape) != 4 or not over_image(node) or not covers(reduced.shape, x.shape):
        raise UndefinedResultError("Mean", f"int8 of shape {list(x.shape)} to {list(reduced.shape)}")
    return reduced


def over_image(node: Node) -> bool:
    """Whether the axes are 1 and 2, in either order."""
    return sorted(node.constant(1).reshape(-1).tolist()) == [1, 2]


def covers(output: Shape, image: Shape) -> bool:
    """Whether an output, filled up to four dimensions from the left, is (N, 1, 1, C)."""
    return (1,) * (4 - len(output)) + output == (image[0], 1, 1, image[3])


def eval_int8(data: IntegerData, x: Array, axes: Array) -> Array:
    """Source: integer_ops Mean. Rounding: the sum by the stage, then its n-th part half away. Overflow: clamps."""
    count = data.reduced.count
    scaled = data.stage(sum_int32(data.reduced.rows(x)) - np.int32(data.zeros)).astype(np.int64)
    parts = np.sign(scaled) * ((np.abs(scaled) + count // 2) // count)
    codes = np.clip(parts + data.zero_point, *type_range(np.int8))
    return np.asarray(codes, np.int8).reshape(data.reduced.shape)


KERNELS = valid(
    tf1(),
    Kernel("MEAN", "uint8 int32 -> uint8", prepare_general, (1, 2), AXES),
    Kernel("MEAN", "int8 int32 -> int8", prepare_int8, (1, 2), AXES),
)
