"""QUANTIZE of float32 by vector code: eight at a time by a float32 reciprocal, what is left over as quantize_scalar.

Operands, options and refusals: tflq/kernels/reference/quantize.py; several scales are quantized as there.
Source: LiteRT 2.3 optimized_ops.h AffineQuantize with USE_NEON; RoundToNearest.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.blocks import in_whole_blocks
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.optimized.quantize_scalar import TYPES, per_tensor, quantize_scalar
from tflq.kernels.reference import quantize
from tflq.kernels.reference.quantize import FloatData
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.compiled import Int, Real, compiled
from tflq.numerics.rounding import clamp, float_to_int32, round_half_even, wrap_int32

#: Elements that the vector loop takes at a time.
BLOCK = 8


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Per tensor; the reciprocal of the scale is rounded to float32."""
    made = quantize.prepare_float(node, arithmetic)
    return made if len(made.data.scale) > 1 else Prepared(made.shapes, made.data, eval_blocks)


def eval_blocks(data: FloatData, x: Array) -> Array:
    """Source: AffineQuantize. Rounding: float32 product, then half to even; what is left over half away."""
    out = np.empty(x.shape, data.dtype)
    given, codes = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    at = in_whole_blocks(given.size, BLOCK)
    scale, zero_point, low, high = per_tensor(data)
    quantize_block(given[:at], np.float32(1.0 / scale), zero_point, low, high, codes[:at])
    quantize_scalar(given[at:], scale, zero_point, low, high, codes[at:])
    return out


@compiled
def quantize_block(x: Array, inverse: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """out = round(x * inverse) + zero point, clamped; 1-D. Overflow: INT32_MIN, as the conversion gives it."""
    for i in range(x.size):
        whole = float_to_int32(round_half_even(np.float64(np.float32(x[i] * inverse))))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


KERNELS = (Kernel("QUANTIZE", TYPES, prepare_float, (1, 6)),)
