"""Float activations against narrow weights as XNNPACK has them: rows always quantized asymmetrically, in float32.

Source: XNNPACK's xnn_f32_qd8_asymmetric_quantization_params, f32-qs8 vcvt and qd8-f32 matrix products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UndefinedResultError
from tflq.numerics.compiled import compiled
from tflq.numerics.dynamic_range import Floats, Ints8, Ints32, Rows
from tflq.numerics.multiply_add import fused
from tflq.numerics.pieces import in_pieces

#: Sums (R, O), scales of the rows (R, 1), scales of the weights (O,), bias (O,) -> results, all float32.
Rescale = Callable[[Floats, Floats, Floats, Floats], NDArray[np.float32]]


def quantize_rows_float32(x: Floats) -> Rows:
    """Each row of `x` (B, K) by itself; ranges include 0. Infinities and NaN are refused."""
    if not np.isfinite(x).all():
        raise UndefinedResultError("xnn_f32_qd8_asymmetric_quantization_params", "a row holds NaN or an infinity")
    rows = Rows(np.empty(x.shape, np.int8), np.empty(len(x), np.float32), np.empty(len(x), np.int32))
    _quantize(np.ascontiguousarray(x), rows.codes, rows.scale, rows.zero_point)
    return rows


@in_pieces(8, x="r", codes="r", scale="r", zero_point="r")
@compiled
def _quantize(x: Floats, codes: Ints8, scale: Floats, zero_point: Ints32) -> None:
    """Rounding: half to even. The zero point is the one whose error at the range's ends is smaller.

    The caller guarantees: `x` and `codes` are (B, K), `scale` is (B) and `zero_point` (B).
    """
    lowest, highest = np.float32(-128), np.float32(127)
    for b in range(x.shape[0]):
        low, high = np.float32(0), np.float32(0)
        for k in range(x.shape[1]):
            low, high = min(low, x[b, k]), max(high, x[b, k])
        per_unit = np.float32(1) if low == high else np.float32(np.float32(255) / np.float32(high - low))
        scaled_low, scaled_high = np.float32(low * per_unit), np.float32(high * per_unit)
        from_low, from_high = np.float32(lowest + scaled_low), np.float32(highest + scaled_high)
        is_low = np.float32(from_low + from_high) > np.float32(0)
        zero = np.float32(lowest - scaled_low) if is_low else np.float32(highest - scaled_high)
        zero = np.rint(min(max(zero, lowest), highest))
        scale[b] = np.float32(np.float32(1) / per_unit)
        zero_point[b] = np.int32(zero)
        for k in range(x.shape[1]):
            scaled = np.float32(x[b, k] * per_unit)
            clamped = min(max(scaled, np.float32(lowest - zero)), np.float32(highest - zero))
            codes[b, k] = np.int32(np.rint(clamped)) + np.int32(zero)


def rescale_fused(sums: Floats, row: Floats, weights: Floats, bias: Floats) -> NDArray[np.float32]:
    """The sum times the row's scale, rounded; that times the weights' scale plus the bias, rounded once."""
    return fused(sums * row, weights, bias)


def rescale_apart(sums: Floats, row: Floats, weights: Floats, bias: Floats) -> NDArray[np.float32]:
    """The sum times the product of both scales, plus the bias; each step rounded."""
    return np.asarray(sums * (weights * row) + bias)
