"""Named roundings, divisions, and fixed-point steps: each defined only here.

Leading bits of integers.

Source: LiteRT 2.3 tflite/kernels/internal/common.h, CountLeadingZeros, CountLeadingSignBits, FloorLog2.

Divisions of integers by powers of two, one for each rounding that hardware and firmware are known to use.

Named roundings, wraps and saturations: each the only place where that step happens.

Scalar definitions, compiled into every loop that uses them. Arguments and results are int64 or float64 unless stated
otherwise, wide enough that nothing overflows before the named step.

gemmlowp's fixed-point arithmetic on raw integers of 32 or 16 bits.

A raw value r with b integer bits in a word of w bits represents r / 2**(w - 1 - b). `width` is w; arguments and results
are int64 that hold values of that width. Derivations: docs/numerics.md.

Source: gemmlowp fixedpoint/fixedpoint.h (the pins of TensorFlow r1.15 and of LiteRT 2.3 agree).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.typing import Array


@compiled
def count_leading_zeros(x: Int, width: Int) -> Int:
    """Count the zero bits above the highest set bit of an unsigned `x` of `width` bits (at most 63); `width` for 0."""
    rest, count = np.int64(x), np.int64(width)
    while rest > 0:
        rest >>= np.int64(1)
        count -= np.int64(1)
    return count


@compiled
def count_leading_sign_bits(x: Int, width: Int) -> Int:
    """Count the copies of the sign bit below the sign bit itself, for a signed `x` of `width` bits; width - 1 for 0 and
    -1.
    """
    magnitude = np.int64(x) if x >= 0 else ~np.int64(x)
    return count_leading_zeros(magnitude, width) - np.int64(1)


Ints = NDArray[np.int64]

#: A function from int64 values to values / 2**bits; `bits` is 0..62 and broadcasts.
Divide = Callable[[Ints, Ints], Ints]


def down(values: Ints, bits: Ints) -> Ints:
    """Round towards minus infinity: an arithmetic shift."""
    return values >> bits


def to_zero(values: Ints, bits: Ints) -> Ints:
    """Round towards zero, symmetrically for both signs."""
    return (values + (((np.int64(1) << bits) - 1) & (values >> np.int64(63)))) >> bits


def half_up(values: Ints, bits: Ints) -> Ints:
    """Round to nearest, ties upwards."""
    return (values + _half(bits)) >> bits


def half_away(values: Ints, bits: Ints) -> Ints:
    """Round to nearest, ties away from zero."""
    half = _half(bits)
    return (values + half - ((values < 0) & (half > 0))) >> bits


def half_even(values: Ints, bits: Ints) -> Ints:
    """Round to nearest, ties to even."""
    whole = values >> bits
    rest, half = values - (whole << bits), _half(bits)
    is_odd = (whole & 1) == 1
    up: Ints = whole + ((half > 0) & ((rest > half) | ((rest == half) & is_odd)))
    return up


def to_odd(values: Ints, bits: Ints) -> Ints:
    """Cut off, and set the lowest bit if anything was cut off: RISC-V's vxrm mode rod, "jamming"."""
    whole = values >> bits
    odd: Ints = whole | (values != whole << bits)
    return odd


def _half(bits: Ints) -> Ints:
    return (np.int64(1) << bits) >> np.int64(1)


#: Divisions by name.
DIVISIONS: dict[str, Divide] = {
    "towards minus infinity": down,
    "towards zero": to_zero,
    "half up": half_up,
    "half away from zero": half_away,
    "half to even": half_even,
}

#: Divisions of the fixed-point units of processors, which the grammar of requantizers does not draw by itself.
OF_HARDWARE: dict[str, Divide] = {**DIVISIONS, "to odd": to_odd}

#: Roundings of reals, by the same names.
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "towards minus infinity": np.floor,
    "towards zero": np.trunc,
    "half up": lambda x: np.floor(x + x.dtype.type(0.5)),
    "half away from zero": lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x),
    "half to even": np.rint,
}

#: Quotients of a sum by a count above 0, by the same names.
QUOTIENTS: dict[str, Divide] = {
    "half away from zero": lambda total, count: np.sign(total) * ((2 * np.abs(total) + count) // (2 * count)),
    "towards minus infinity": lambda total, count: total // count,
    "towards zero": lambda total, count: np.sign(total) * (np.abs(total) // count),
    "half up": lambda total, count: (2 * total + count) // (2 * count),
    "half to even": lambda total, count: np.rint(total / count).astype(np.int64),
}


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


def rounding_half_away(x: float) -> int:
    """Return the Python integer nearest to `x`, ties away from zero. Exact for every finite float."""
    whole = math.trunc(x)
    return whole + (0 if abs(x - whole) < 0.5 else (1 if x > 0 else -1))


@compiled
def saturating_rounding_doubling_high_mul(a: Int, b: Int) -> Int:
    """Return High half of 2*a*b for int32 `a`, `b`: floor((a*b + 2**30) / 2**31), ties towards plus infinity.

    gemmlowp writes a sign-dependent nudge and a truncating division, which together round half up. The one overflow,
    both operands INT32_MIN, saturates to INT32_MAX.
    """
    return doubling_high_mul(a, b, 32)


@compiled
def doubling_high_mul(a: Int, b: Int, width: Int) -> Int:
    """Return the product of two values with 0 integer bits, half up; saturates once. Source:
    SaturatingRoundingDoublingHighMul.
    """
    shift = np.int64(width) - np.int64(1)
    product = (np.int64(a) * np.int64(b) + (np.int64(1) << (shift - np.int64(1)))) >> shift
    return min(product, highest(width))


@compiled
def rounding_divide_by_pot(x: Int, exponent: Int) -> Int:
    """Return x / 2**exponent, ties away from zero, for any width of the word. Source: RoundingDivideByPOT."""
    return divide_by_pot_half_away(x, exponent)


@compiled
def saturating_rounding_multiply_by_pot(x: Int, exponent: Int, width: Int) -> Int:
    """Return x * 2**exponent: saturating for exponent > 0, half away from zero below.

    Source: SaturatingRoundingMultiplyByPOT, also LiteRT's SaturatingRoundingMultiplyByPOTParam (exponent >= 0).
    """
    if exponent <= 0:
        return divide_by_pot_half_away(x, -np.int64(exponent))
    return clamp(np.int64(x) << np.int64(exponent), lowest(width), highest(width))


@compiled
def rescale(x: Int, from_bits: Int, to_bits: Int, width: Int) -> Int:
    """Return the same value with `to_bits` instead of `from_bits` integer bits; saturates, or rounds half away. Source:
    Rescale.
    """
    return saturating_rounding_multiply_by_pot(x, np.int64(from_bits) - np.int64(to_bits), width)


@compiled
def rounding_half_sum(a: Int, b: Int) -> Int:
    """Return (a + b) / 2, ties away from zero. Source: RoundingHalfSum."""
    return divide_by_pot_half_away(np.int64(a) + np.int64(b), 1)


@compiled
def saturating_add(a: Int, b: Int, width: Int) -> Int:
    """Return a + b, saturated to the word. Source: SaturatingAdd (int16), SaturatingAddNonGemmlowp (int32)."""
    return clamp(np.int64(a) + np.int64(b), lowest(width), highest(width))


@compiled
def saturating_sub(a: Int, b: Int, width: Int) -> Int:
    """Return a - b, saturated to the word. Source: SaturatingSub."""
    return clamp(np.int64(a) - np.int64(b), lowest(width), highest(width))


@compiled
def one(integer_bits: Int, width: Int) -> Int:
    """Return 1.0, or the largest raw value if there is no integer bit to hold it. Source: FixedPoint::One()."""
    if integer_bits == 0:
        return highest(width)
    return np.int64(1) << (np.int64(width) - np.int64(1) - np.int64(integer_bits))


@compiled
def constant(raw: Int, width: Int) -> Int:
    """Return a constant given as a 32-bit raw value, in a word of `width`: half away from zero."""
    return divide_by_pot_half_away(raw, np.int64(32) - np.int64(width))
