"""gemmlowp's fixed-point arithmetic on raw integers of 32 or 16 bits.

A raw value r with b integer bits in a word of w bits represents r / 2**(w - 1 - b). `width` is w; arguments and results
are int64 that hold values of that width. Derivations: docs/numerics.md.

Source: gemmlowp fixedpoint/fixedpoint.h (the pins of TensorFlow r1.15 and of LiteRT 2.3 agree).
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, highest, lowest


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
