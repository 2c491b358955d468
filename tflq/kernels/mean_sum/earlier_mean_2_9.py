"""MEAN up to 2.9 over height and width of images: the signed types are rescaled before they are divided; uint8 has one
multiplier of the raw sum. Every other form is that of 2.12.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: TensorFlow 2.9 lite/kernels/reduce.cc EvalMeanReferenceOps; reference/integer_ops/mean.h Mean;
reference/reduce.h Mean (uint8).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.ir import CARRIER, TensorType
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import earlier_mean_2_12 as mean_2_12
from tflq.kernels.mean_sum.optimized_mean import is_over_image, over_image
from tflq.kernels.operands import require_zero_point_zero
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import OutputStage, type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the signed types."""

    reduced: Reduced
    zeros: int  # zero point of the input times the number of summands, LSB of input
    stage: OutputStage  # LSB of input -> LSB of output
    zero_point: int  # LSB of output
    low: int  # LSB of output
    high: int


def prepare_signed(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The real multiplier is a float64 quotient."""
    if not is_over_image(node):
        return mean_2_12.prepare_general(node, arithmetic)
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
    reduced = reduced_axes(node)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    limits = type_range(CARRIER[x.type])
    data = OpData(reduced, x.zero_point * reduced.count, stage, y.zero_point, *limits)
    return Prepared((reduced.shape,), data, eval_signed)


def eval_signed(data: OpData, x: Array, axes: Array) -> Array:
    """Source: integer_ops Mean. Rounding: the sum by the stage, then its n-th part half away. Overflow: int32 wraps."""
    count = data.reduced.count
    scaled = data.stage(sum_int32(data.reduced.rows(x)) - np.int64(data.zeros).astype(np.int32)).astype(np.int64)
    parts = np.sign(scaled) * ((np.abs(scaled) + count // 2) // count)
    codes = np.clip(parts + data.zero_point, data.low, data.high)
    return np.asarray(codes, x.dtype).reshape(data.reduced.shape)


KERNELS = valid(
    tflite(until="tflite-2.9"),
    *(Kernel("MEAN", f"{t} int32 -> {t}", prepare_signed, (1, 3), AXES) for t in ("int8", "int16")),
    Kernel("MEAN", "uint8 int32 -> uint8", over_image(mean_2_12.prepare_general), (1, 3), AXES),
)
