"""MEAN of 8-bit codes by XNNPACK as LiteRT 1.2 to 2.0 have it: the mean in float32, rescaled, rounded half away.

Operands, options and refusals: tflq/kernels/mean_sum/mean.py.
Source: LiteRT 1.4 xnnpack_delegate.cc VisitMeanNode; XNNPACK's reduce, qs8 and qu8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.delegation import delegate
from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.families.xnnpack_reductions import takes
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import nearest_half_away
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    reduced: Reduced
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # what the input's zero point makes, LSB of output
    zero_point: np.float32  # LSB of output
    dtype: np.dtype[Any]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The quotient of scales and its product with the zero point are rounded to float32."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale
    return Prepared((reduced.shape,), OpData(reduced, scale, bias, np.float32(y.zero_point), CARRIER[x.type]), evaluate)


def evaluate(data: OpData, x: Array, axes: Array) -> Array:
    """Rounding: every step to float32, both zero points added first, then half away. Overflow: the sum wraps int32."""
    means = sum_int32(data.reduced.rows(x)).astype(np.float32) / np.float32(data.reduced.count)
    whole = nearest_half_away(means * data.scale + data.bias + data.zero_point)
    codes: Array = np.clip(whole, *type_range(data.dtype)).astype(data.dtype)
    return codes.reshape(data.reduced.shape)


KERNELS = valid(
    xnnpack("litert-1.4", "litert-2.0"),
    *(delegate(Kernel("MEAN", f"{t} int32 -> {t}", prepare, (1, 3), AXES), takes) for t in ("uint8", "int8")),
)
