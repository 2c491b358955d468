"""SUM of 8-bit codes by XNNPACK as LiteRT 1.2 to 2.0 have it: the sum rescaled in float32, rounded half away.

Operands, options and refusals: tflq/kernels/mean_sum/sum.py.
Source: LiteRT 1.4 xnnpack_delegate.cc VisitReduceNode; XNNPACK's reduce, qs8 and qu8.
"""

from __future__ import annotations

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.delegation import delegate
from tflq.kernels.families.reduction import AXES, reduced_axes, sum_int32
from tflq.kernels.families.xnnpack_reductions import takes
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum.xnnpack_mean_2_0 import OpData
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import nearest_half_away
from tflq.numerics.stages import type_range


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The quotient of scales, its product with the zero point, and that times the count are rounded to float32."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale * np.float32(reduced.count)
    return Prepared((reduced.shape,), OpData(reduced, scale, bias, np.float32(y.zero_point), CARRIER[x.type]), evaluate)


def evaluate(data: OpData, x: Array, axes: Array) -> Array:
    """Rounding: every step to float32, both zero points added first, then half away. Overflow: the sum wraps int32."""
    sums = sum_int32(data.reduced.rows(x)).astype(np.float32)
    whole = nearest_half_away(sums * data.scale + data.bias + data.zero_point)
    codes: Array = np.clip(whole, *type_range(data.dtype)).astype(data.dtype)
    return codes.reshape(data.reduced.shape)


KERNELS = valid(
    xnnpack("litert-1.4", "litert-2.0"),
    *(delegate(Kernel("SUM", f"{t} int32 -> {t}", prepare, (1, 2), AXES), takes) for t in ("uint8", "int8")),
)
