"""MEAN over height and width of images: the forms that several releases and resolvers share.

The form holds for four dimensions, kept, when the axes are 1 and 2. The vector code has one multiplier of the raw sum
and a bias for both zero points; blocks of channels begin at each thread's first channel, here one thread. The older
integer form rescales the sum and then divides it.
Source: LiteRT 2.3 reduce.cc EvalMean, BuildMeanParamsFor4D; optimized/integer_ops/mean.h Mean, MeanImpl;
optimized_ops.h Mean (uint8). TensorFlow r1.15 to 2.9 reference/integer_ops/mean.h Mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.families.reduction import Reduced, reduced_axes, sum_int32
from tflq.engine.kernels.families.vector_blocks import channel_blocks
from tflq.engine.kernels.kernel import Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.rounding import float_to_int32, wrap_int32
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Channels that the vector loop takes at a time.
BLOCK = 16

Prepare = Callable[[Node, Arithmetic], Prepared]


@dataclass(frozen=True, slots=True, eq=False)
class VectorData:
    """Constants of the vector code."""

    reduced: Reduced
    pipeline: OutputPipeline  # raw sums -> codes; the zero point is the bias


@dataclass(frozen=True, slots=True, eq=False)
class IntegerData:
    """Constants of the form that divides last."""

    reduced: Reduced
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    stage: OutputStage  # LSB of input -> LSB of output
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def has_image_axes(node: Node) -> bool:
    """Return whether the axes are given as 1 and 2 of four dimensions, in either order."""
    return len(node.input(0).shape) == 4 and sorted(node.constant(1).reshape(-1).tolist()) == [1, 2]


def names_image_axes(node: Node) -> bool:
    """Return whether the axes name 1 and 2 of four dimensions: negative ones and repetitions count."""
    return len(node.input(0).shape) == 4 and {int(axis) % 4 for axis in node.constant(1).reshape(-1)} == {1, 2}


def over_image(special: Prepare, otherwise: Prepare, is_image: Callable[[Node], bool] = has_image_axes) -> Prepare:
    """Return a prepare that takes `special` for images whose axes are kept, and `otherwise` for every other form."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        takes = is_image(node) and bool(node.options["keep_dims"]) and prod(node.input(0).shape) > 0
        return (special if takes else otherwise)(node, arithmetic)

    return prepare


def prepare_rounded(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Round the input's part of the bias half away: zero point * scale / scale in float32."""
    shifted = _shift(node)
    half = np.float32(0.5)
    offset = int(float_to_int32(np.trunc(shifted + half if shifted > 0 else shifted - half)))
    return _prepare_biased(node, arithmetic, int(wrap_int32(node.outputs[0].zero_point - offset)))


def prepare_truncated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Round the input's part of the bias towards zero."""
    return _prepare_biased(node, arithmetic, node.outputs[0].zero_point - int(_shift(node)))


def _shift(node: Node) -> np.float32:
    x, y = node.input(0), node.outputs[0]
    return np.float32(x.zero_point) * x.scale / y.scale


def _prepare_biased(node: Node, arithmetic: Arithmetic, bias: int) -> Prepared:
    """Prepare the vector code: `bias` holds both zero points, LSB of output; the multiplier is scale / (n * scale)."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    real = np.float64(x.scale / (np.float32(reduced.count) * y.scale))
    dtype = CARRIER[x.type]
    stage = channel_blocks(arithmetic, BLOCK)(np.full(x.shape[3], real))
    data = VectorData(reduced, OutputPipeline(stage, ZeroPoint(bias), type_range(dtype), dtype))
    return Prepared((reduced.shape,), data, eval_over_image)


def eval_over_image(data: VectorData, x: Array, axes: Array) -> Array:
    """Source: MeanImpl. Rounding: by the stage. Overflow: the sum wraps int32."""
    return data.pipeline(sum_int32(data.reduced.rows(x))).reshape(data.reduced.shape)


def prepare_divided_last(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier as a float64 quotient."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    zeros = ZeroPoint(x.zero_point * reduced.count)
    data = IntegerData(reduced, zeros, stage, y.zero_point, type_range(CARRIER[x.type]))
    return Prepared((reduced.shape,), data, eval_divided_last)


def eval_divided_last(data: IntegerData, x: Array, axes: Array) -> Array:
    """Source: integer_ops Mean. Rounding: the sum by the stage, then its n-th part half away. Overflow: int32 wraps."""
    count = data.reduced.count
    scaled = data.stage(sum_int32(data.reduced.rows(x)) - np.int64(data.zeros).astype(np.int32)).astype(np.int64)
    parts = np.sign(scaled) * ((np.abs(scaled) + count // 2) // count)
    codes = np.clip(parts + data.zero_point, *data.clamp)
    return np.asarray(codes, x.dtype).reshape(data.reduced.shape)
