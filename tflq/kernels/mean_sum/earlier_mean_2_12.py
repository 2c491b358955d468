"""MEAN up to 2.12: codes are divided as they are where both quantizations are equal, else rescaled in float32.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: TensorFlow 2.12 lite/kernels/reduce.cc EvalMeanReferenceOps; reference/reduce.h Mean, QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.ir import CARRIER, TensorType
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum.mean import eval_empty
from tflq.kernels.mean_sum.tf1_mean import eval_codes, same_quantization
from tflq.kernels.operands import require_zero_point_zero
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import nearest_half_away
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a mean in float32."""

    reduced: Reduced
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # what the input's zero point makes, LSB of output
    zero_point: np.float32  # LSB of output
    low: int  # LSB of output
    high: int


def prepare_general(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Any axes. The quotient of scales and its product with the zero point are rounded to float32."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
    reduced = reduced_axes(node)
    dtype = CARRIER[x.type]
    if prod(x.shape) == 0:
        return Prepared((reduced.shape,), np.zeros(reduced.shape, dtype), eval_empty)
    if same_quantization(node):
        return Prepared((reduced.shape,), reduced, eval_codes)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale
    data = OpData(reduced, scale, bias, np.float32(y.zero_point), *type_range(dtype))
    return Prepared((reduced.shape,), data, eval_rescaled)


def eval_rescaled(data: OpData, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: every step to float32, then half away. Overflow: the sum wraps int32."""
    means = sum_int32(data.reduced.rows(x)).astype(np.float32) / np.float32(data.reduced.count)
    whole = nearest_half_away(means * data.scale + data.bias) + data.zero_point
    return np.clip(whole, data.low, data.high).astype(x.dtype).reshape(data.reduced.shape)


KERNELS = valid(
    tflite(until="tflite-2.12"),
    *(Kernel("MEAN", f"{t} int32 -> {t}", prepare_general, (1, 3), AXES) for t in ("uint8", "int8", "int16")),
)
