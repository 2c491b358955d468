"""Named roundings, wraps and saturations: each the only place where that step happens.

Scalar definitions, compiled into every loop that uses them. Arguments and results are int64 or float64 unless stated
otherwise, wide enough that nothing overflows before the named step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.typing import Array

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1


@compiled
def wrap_int32(x: Int) -> Int:
    """Wrap `x` modulo 2**32 into [-2**31, 2**31), as a two's complement register keeps it."""
    return np.int64(np.int32(np.int64(x)))


@compiled
def wrap(x: Int, width: Int) -> Int:
    """Wrap `x` modulo 2**width into [-2**(width-1), 2**(width-1)), as a two's complement register keeps it."""
    spare = np.int64(64) - np.int64(width)
    return (np.int64(x) << spare) >> spare


@compiled
def lowest(width: Int) -> Int:
    """Return the smallest value of a signed word."""
    return -(np.int64(1) << (np.int64(width) - np.int64(1)))


@compiled
def highest(width: Int) -> Int:
    """Return the largest value of a signed word."""
    return (np.int64(1) << (np.int64(width) - np.int64(1))) - np.int64(1)


@compiled
def clamp(x: Int, low: Int, high: Int) -> Int:
    """Clamp `x` to [low, high]; `high` wins if the limits are crossed."""
    return min(max(x, low), high)


@compiled
def clamp_upper_first(x: Int, low: Int, high: Int) -> Int:
    """Clamp `x` to [low, high]; if the limits are crossed, values above `high` give `high` and all others `low`.

    Source: ReluX, which checks the upper limit first.
    """
    if x > high:
        return np.int64(high)
    return np.int64(low) if x < low else np.int64(x)


@compiled
def divide_by_pot_half_away(x: Int, exponent: Int) -> Int:
    """Return x / 2**exponent, ties away from zero. `exponent` in 0..62.

    Source: gemmlowp RoundingDivideByPOT (fixedpoint/fixedpoint.h).
    """
    mask = (np.int64(1) << np.int64(exponent)) - np.int64(1)
    remainder = np.int64(x) & mask
    threshold = (mask >> np.int64(1)) + np.int64(x < 0)
    return (np.int64(x) >> np.int64(exponent)) + np.int64(remainder > threshold)


@compiled
def divide_by_pot_half_up(x: Int, exponent: Int) -> Int:
    """Return x / 2**exponent, ties towards plus infinity. `exponent` in 0..62; 0 leaves `x` as it is."""
    return (np.int64(x) + ((np.int64(1) << np.int64(exponent)) >> np.int64(1))) >> np.int64(exponent)


@compiled
def round_half_away(x: Real) -> Real:
    """Return the nearest integer as float64, ties away from zero: C's round()."""
    whole = np.trunc(x)
    return whole + np.copysign(np.float64(abs(x - whole) >= 0.5), x)


@compiled
def round_half_even(x: Real) -> Real:
    """Return the nearest integer as float64, ties to even: C's rint() in its default mode."""
    return np.rint(x)


@compiled
def float_to_int32(x: Real) -> Int:
    """Convert an integral float to int32, as x86 does: NaN and values outside int32 give INT32_MIN.

    C leaves these cases undefined; cvttss2si and its relatives do not.
    """
    if not (x >= -2147483648.0 and x < 2147483648.0):
        return np.int64(INT32_MIN)
    return np.int64(x)


def floats_to_int32(x: NDArray[np.floating[Any]]) -> NDArray[np.int32]:
    """Truncate floats to int32, as x86 converts: INT32_MIN for NaN and for values outside int32 (cvttss2si)."""
    fits = (x > -2147483649.0) & (x < 2147483648.0)
    return np.where(fits, np.where(fits, x, 0).astype(np.int64), INT32_MIN).astype(np.int32)


def nearest_half_away(x: NDArray[np.floating[Any]]) -> Array:
    """Return the nearest integers in the type of `x`, ties away from zero: C's round() and roundf()."""
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x))


def half_away(x: float) -> int:
    """Return the Python integer nearest to `x`, ties away from zero. Exact for every finite float."""
    whole = math.trunc(x)
    return whole + (0 if abs(x - whole) < 0.5 else (1 if x > 0 else -1))
