"""SUM of 8-bit and 16-bit codes: one float32 product of the sum, one addition, one rounding.

Operands, options and refusals: tflq/kernels/mean_sum/sum.py. Every type is read as what it is.
Source: LiteRT 2.3 reduce.cc EvalSum; optimized/reduce.h QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import sum
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    reduced: Reduced
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # what the input's zero point makes of all summands, LSB of output
    zero_point: ZeroPoint  # LSB of output
    dtype: np.dtype[Any]


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale and bias are float32 expressions, left to right."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale * np.float32(reduced.count)
    return Prepared((reduced.shape,), OpData(reduced, scale, bias, y.zero_point, CARRIER[x.type]), eval_quantized)


def eval_quantized(data: OpData, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: float32, product and sum apart, then half away. Overflow: int32 wraps."""
    rows = data.reduced.rows(x)
    if not rows.size:
        return np.zeros(data.reduced.shape, data.dtype)
    real = sum_int32(rows).astype(np.float32) * data.scale + data.bias
    codes = floats_to_int32(nearest_half_away(real)) + np.int32(data.zero_point)
    clamped = np.clip(codes, *type_range(data.dtype)).astype(data.dtype)
    return np.asarray(clamped).reshape(data.reduced.shape)


KERNELS = (
    *valid(
        opt("litert-1.0"),
        *(Kernel("SUM", f"{t} int32 -> {t}", prepare_quantized, (1, 2), AXES) for t in ("uint8", "int8", "int16")),
    ),
    *valid(opt(), *unclaimed_floats(sum.KERNELS)),
)
