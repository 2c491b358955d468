"""The loops of output stages: accumulators (rows by channels) plus bias, scaled, shifted and clamped, in one pass.

There is one constant per channel, or constants repeat so that several rows are one run. Zero point and limits are LSB
of the output.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.multiplier import multiply_single_rounding, multiply_wide, round_twice
from tflq.engine.numerics.rounding import clamp, float_to_int32, round_half_away, wrap_int32
from tflq.typing import Array

Reals = NDArray[np.float64]
Ints32 = NDArray[np.int32]

#: How shifts to the left end that leave int32; the first means that there are none.
NO_SHIFT, WRAPS, SATURATES = 0, 1, 2


@writes("out")
@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def double_rounding_rows(
    accumulator: Array,
    out: Array,
    bias: Array,
    mantissa: Ints32,
    left: Array,
    offset: Array,
    below: Array,
    right: Array,
    zero_point: Int,
    low: Int,
    high: Int,
    shifts_left: Int,
    is_short: bool,
) -> None:
    """Scale as DoubleRounding does: two roundings, done with one shift.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    lowest, highest = np.int32(low), np.int32(high)  # half as wide, twice as many at a time
    period = mantissa.size
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                value = np.int64(np.int32(source[k])) if is_short else np.int64(source[k])
                total = wrap_int32(value + np.int64(bias[k]))
                if shifts_left == WRAPS:
                    total = wrap_int32(total << left[k])
                elif shifts_left:
                    total = clamp(total << left[k], -(2**31), 2**31 - 1)
                scaled = round_twice(total * np.int64(mantissa[k]), offset[k], below[k], right[k])
                codes[k] = clamp(np.int32(wrap_int32(scaled + zero_point)), lowest, highest)


@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def single_rounding_rows(
    accumulator: Array, out: Array, bias: Array, mantissa: Ints32, shift: Ints32, zero_point: Int, low: Int, high: Int
) -> None:
    """Scale as SingleRounding does: one rounding, half up.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    period = mantissa.size
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                total = wrap_int32(np.int64(source[k]) + np.int64(bias[k]))
                scaled = multiply_single_rounding(total, mantissa[k], shift[k])
                codes[k] = clamp(wrap_int32(scaled + zero_point), low, high)


@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def wide_rows(
    accumulator: Array, out: Array, bias: Array, mantissa: Ints32, shift: Ints32, zero_point: Int, low: Int, high: Int
) -> None:
    """Scale as WideRounding does: int64 accumulators, one rounding, half up.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    period = mantissa.size
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                total = np.int64(source[k]) + np.int64(bias[k])
                scaled = multiply_wide(total, mantissa[k], shift[k])
                codes[k] = clamp(wrap_int32(scaled + zero_point), low, high)


@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def float_rounding_rows(
    accumulator: Array, out: Array, bias: Array, real: Reals, zero_point: Int, low: Int, high: Int, wraps: bool
) -> None:
    """Scale as FloatRounding does: a float64 product, rounded half away from zero.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    period = real.size
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                total = np.int64(source[k]) + np.int64(bias[k])
                if wraps:
                    total = wrap_int32(total)
                scaled = float_to_int32(round_half_away(np.float64(total) * real[k]))
                codes[k] = clamp(wrap_int32(scaled + zero_point), low, high)


@compiled
def scale_twice(total: Int, mantissa: Int, left: Int, offset: Int, below: Int, right: Int) -> Int:
    """Scale an int32 accumulator by the constants that DoubleRounding.of_one returns."""
    return wrap_int32(round_twice(wrap_int32(total << left) * mantissa, offset, below, right))
