"""Float activations against narrow weights as XNNPACK has them: rows always quantized asymmetrically, in float32.

Source: XNNPACK's xnn_f32_qd8_asymmetric_quantization_params, f32-qs8 vcvt and qd8-f32 matrix products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.dynamic_range import Floats, Ints8, Ints32, Rows, are_finite
from tflq.engine.numerics.multiply_add import fuse, multiply_add_once
from tflq.errors import UndefinedResultError

#: Sums (R, O), scales of the rows (R, 1), scales of the weights (O,), bias (O,) -> results, all float32.
Rescale = Callable[[Floats, Floats, Floats, Floats], NDArray[np.float32]]


def quantize_rows_float32(x: Floats) -> Rows:
    """Quantize each row of `x` (B, K) by itself; ranges include 0. Raises UndefinedResultError if not finite."""
    if not np.isfinite(x).all():
        raise not_finite()
    rows = Rows(np.empty(x.shape, np.int8), np.empty(len(x), np.float32), np.empty(len(x), np.int32))
    _quantize(np.ascontiguousarray(x), rows.codes, rows.scale, rows.zero_point)
    return rows


def not_finite() -> UndefinedResultError:
    """Return the error for rows that cannot be quantized."""
    return UndefinedResultError("xnn_f32_qd8_asymmetric_quantization_params", "a row holds NaN or an infinity")


@in_pieces(8, x="r", codes="r", scale="r", zero_point="r")
@compiled
def _quantize(x: Floats, codes: Ints8, scale: Floats, zero_point: Ints32) -> None:
    """Quantize rows, half to even. The zero point is the candidate with the smaller error at the range's ends.

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


@in_pieces(lambda x, weights, *_: len(x) * weights.size, x="r", out="r")
@compiled
def multiply_quantized(
    x: Floats,
    weights: Ints8,
    scale: Floats,
    bias: Floats,
    is_fused: bool,
    low: Real,
    high: Real,
    out: Floats,
    undefined: Ints8,
) -> None:
    """Compute out = clamp(the rows of `x`, quantized as quantize_rows_float32 does, times `weights`, rescaled).

    `is_fused` selects rescale_fused, else rescale_apart. If a row holds NaN or an infinity, `undefined` becomes 1
    instead.

    The caller guarantees: `x` is (B, K), `weights` (N, K), `scale` and `bias` (N), `out` (B, N), `undefined` (1).
    """
    rows, depth = x.shape
    if not are_finite(x):
        undefined[0] = 1
        return
    codes, row_scale, zero_point = (
        np.empty((rows, depth), np.int16),
        np.empty(rows, np.float32),
        np.empty(rows, np.int32),
    )
    _quantize(x, codes, row_scale, zero_point)
    for b in range(rows):
        row = codes[b]
        for k in range(depth):
            row[k] -= np.int16(zero_point[b])
        for n in range(out.shape[1]):
            factors, total = weights[n], np.int32(0)
            for k in range(depth):
                total += np.int32(row[k]) * np.int32(factors[k])
            summed = np.float32(np.int32(total))
            if is_fused:
                value = multiply_add_once(np.float32(summed * row_scale[b]), scale[n], bias[n])
            else:
                value = np.float32(np.float32(summed * np.float32(scale[n] * row_scale[b])) + bias[n])
            value = low if value < low else value
            out[b, n] = high if value > high else value


def rescale_fused(sums: Floats, row: Floats, weights: Floats, bias: Floats) -> NDArray[np.float32]:
    """Return the sum times the row's scale, rounded; that times the weights' scale plus the bias, rounded once."""
    return fuse(sums * row, weights, bias)


def rescale_apart(sums: Floats, row: Floats, weights: Floats, bias: Floats) -> NDArray[np.float32]:
    """Return the sum times the product of both scales, plus the bias; each step is rounded."""
    return np.asarray(sums * (weights * row) + bias)
