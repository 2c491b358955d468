"""Real multipliers as a 31-bit mantissa and a power-of-two shift, and their application to accumulators.

A `shift` above 0 shifts to the left everywhere. Real multipliers are float64, mantissas Q31 in [2**30, 2**31). Source:
LiteRT 2.3 tflite/kernels/internal/quantization_util.cc and common.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.numerics.fixedpoint import saturating_rounding_doubling_high_mul
from tflq.engine.numerics.rounding import divide_by_pot_half_away, half_away, wrap_int32
from tflq.errors import UndefinedResultError

#: Exponents that differ by less are equal: ratios of float32 scales lie a few steps beside a power of two.
NEAR = 2.0**-16


class Multiplier(NamedTuple):
    """The real multiplier mantissa * 2**(shift - 31)."""

    mantissa: int
    shift: int


class ShortMultiplier(NamedTuple):
    """The real multiplier multiplier * 2**(shift - 15)."""

    multiplier: int
    shift: int


class FixedMultiplier(int):
    """A real multiplier in steps of a power of two that its kernel knows."""

    __slots__ = ()


QuantizeMultiplier = Callable[[float], Multiplier]


def quantize_multiplier(real: float) -> Multiplier:
    """Return the fixed-point form of a real multiplier. Below 2**-32 both mantissa and shift are 0.

    Source: QuantizeMultiplier; r1.15 and LiteRT 2.3 agree. The mantissa is rounded half away from zero. A multiplier
    that is not finite converts to INT64_MIN on x86-64, whose low half is a mantissa of 0; AArch64 saturates and aborts.
    """
    if real == 0.0 or not math.isfinite(real):
        return Multiplier(0, 0)
    fraction, shift = math.frexp(real)
    mantissa = half_away(fraction * 2.0**31)
    if mantissa == 2**31:
        mantissa //= 2
        shift += 1
    if shift < -31:
        return Multiplier(0, 0)
    return Multiplier(mantissa, shift)


def quantize_multiplier_single_rounding(real: float) -> Multiplier:
    """Quantize a multiplier for single rounding: shifts above 30 saturate to (2**31 - 1, 30).

    Source: QuantizeMultiplier under TFLITE_SINGLE_ROUNDING.
    """
    multiplier = quantize_multiplier(real)
    return multiplier if multiplier.shift <= 30 else Multiplier(2**31 - 1, 30)


def quantize_multipliers(reals: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return quantize_multiplier of each element: mantissas (Q31) and shifts."""
    fractions, shifts = np.frexp(np.where(np.isfinite(reals), reals, 0.0))
    scaled = fractions * 2.0**31
    whole = np.trunc(scaled)
    mantissas = (whole + np.where(np.abs(scaled - whole) < 0.5, 0.0, np.sign(scaled))).astype(np.int64)
    carried = mantissas == 2**31
    mantissas, shifts = np.where(carried, 2**30, mantissas), shifts + carried
    kept = (mantissas != 0) & (shifts >= -31)
    return np.where(kept, mantissas, 0).astype(np.int32), np.where(kept, shifts, 0).astype(np.int32)


def quantize_multipliers_single_rounding(reals: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return quantize_multiplier_single_rounding of each element."""
    mantissas, shifts = quantize_multipliers(reals)
    saturated = shifts > 30
    return np.where(saturated, np.int32(2**31 - 1), mantissas), np.where(saturated, np.int32(30), shifts)


def quantize_multiplier_smaller_than_one_exp(
    real: float, quantize: QuantizeMultiplier = quantize_multiplier
) -> Multiplier:
    """Return the fixed-point form, shift <= 0, of a real multiplier in (0, 1); others raise, where the original aborts.

    Just below 1 the mantissa rounds up to 1.0, whose shift of 1 aborts as well. Source:
    QuantizeMultiplierSmallerThanOneExp; r1.15 and LiteRT 2.3 agree.
    """
    if not 0.0 < real < 1.0:
        raise UndefinedResultError("QuantizeMultiplierSmallerThanOneExp", f"the real multiplier is {real}")
    multiplier = quantize(real)
    if multiplier.shift > 0:
        raise UndefinedResultError("QuantizeMultiplierSmallerThanOneExp", f"{real} rounds to 1")
    return multiplier


def quantize_multiplier_greater_than_one(real: float, quantize: QuantizeMultiplier = quantize_multiplier) -> Multiplier:
    """Return the fixed-point form, shift >= 0, of a real multiplier above 1; others raise, where the original aborts.

    Source: QuantizeMultiplierGreaterThanOne; r1.15 and LiteRT 2.3 agree.
    """
    if not real > 1.0:
        raise UndefinedResultError("QuantizeMultiplierGreaterThanOne", f"the real multiplier is {real}")
    return quantize(real)


@compiled
def multiply_smaller_than_one(x: Int, mantissa: Int, shift: Int) -> Int:
    """Return x * mantissa * 2**(shift - 31), `shift` <= 0: half up, then half away.

    Source: MultiplyByQuantizedMultiplierSmallerThanOneExp (r1.15; LiteRT 2.3 default build).
    """
    return divide_by_pot_half_away(saturating_rounding_doubling_high_mul(x, mantissa), -np.int64(shift))


@compiled
def multiply_greater_than_one(x: Int, mantissa: Int, shift: Int) -> Int:
    """Return x * mantissa * 2**(shift - 31), `shift` >= 0: the left shift wraps int32, then half up.

    Source: MultiplyByQuantizedMultiplierGreaterThanOne (r1.15; LiteRT 2.3 default build).
    """
    return saturating_rounding_doubling_high_mul(wrap_int32(np.int64(x) << np.int64(shift)), mantissa)


@compiled
def multiply_double_rounding(x: Int, mantissa: Int, shift: Int) -> Int:
    """Return x * mantissa * 2**(shift - 31): the left shift wraps int32, then two roundings.

    Source: MultiplyByQuantizedMultiplier (int32, default build). Rounding: half up in the doubling high multiplication,
    then half away from zero in the division by a power of two. `x` int32, `shift` from -31. C leaves left shifts beyond
    30 undefined; x86 and AArch64 take the amount modulo 32, as does LiteRT 2.3.
    """
    left = max(np.int64(shift), np.int64(0)) & np.int64(31)
    right = max(-np.int64(shift), np.int64(0))
    shifted = wrap_int32(np.int64(x) << left)
    return divide_by_pot_half_away(saturating_rounding_doubling_high_mul(shifted, mantissa), right)


@compiled
def round_twice(product: Int, offset: Int, below: Int, shift: Int) -> Int:
    """Apply both roundings of multiply_double_rounding with one shift; rounding_twice returns the other arguments.

    With v = floor((product + 2**30) / 2**31) and h = 2**(e - 1), the division by 2**e that rounds half away is floor((v
    + h - [v < 0]) / 2**e) for e > 0. Whole numbers may be added before the first floor, times 2**31, and two floors in
    a row are one: floor((product + 2**30 + (h - [v < 0]) * 2**31) / 2**(31 + e)). For e = 0, h = [..] = 0.
    """
    nudged = product + np.int64(1 << 30)
    return (nudged + offset + ((nudged >> np.int64(63)) & below)) >> shift


def rounding_twice(exponent: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return offset, correction below zero, and shift for divisions by 2**exponent after the high multiplication."""
    half = (np.int64(1) << exponent) >> 1
    return half << 31, np.where(exponent > 0, np.int64(-(1 << 31)), np.int64(0)), exponent + 31


@compiled
def multiply_single_rounding(x: Int, mantissa: Int, shift: Int) -> Int:
    """Return x * mantissa * 2**(shift - 31), rounded once, half up, cut to 32 bits.

    Source: MultiplyByQuantizedMultiplier (int32, TFLITE_SINGLE_ROUNDING). `x` int32, `shift` in -31..30.
    """
    total = np.int64(31) - np.int64(shift)
    return wrap_int32((np.int64(x) * np.int64(mantissa) + (np.int64(1) << (total - np.int64(1)))) >> total)


@compiled
def reduce_multiplier(mantissa: Int) -> Int:
    """Reduce a Q31 mantissa to Q15, half up, kept below 2**15, for the int64 path."""
    if mantissa < 0x7FFF0000:
        return (np.int64(mantissa) + np.int64(1 << 15)) >> np.int64(16)
    return np.int64(0x7FFF)


@compiled
def multiply_wide(x: Int, mantissa: Int, shift: Int) -> Int:
    """Return x * mantissa * 2**(shift - 31) for an int64 `x` below 2**47: the mantissa is reduced to 16 bits, one
    rounding.

    Source: MultiplyByQuantizedMultiplier (int64). Rounding: half up; the result is cut to 32 bits. `shift` in -31..7;
    beyond that C leaves the shifts undefined, and 64-bit processors take their amounts modulo 64.
    """
    total = np.int64(15) - np.int64(shift)
    half = np.int64(1) << ((total - np.int64(1)) & np.int64(63))
    return wrap_int32((np.int64(x) * reduce_multiplier(mantissa) + half) >> (total & np.int64(63)))


def exponent_of(ratio: float) -> int | None:
    """Return k if a ratio of scales is 2**k, as far as float32 scales can have it; None for any other number."""
    if not math.isfinite(ratio) or ratio <= 0:
        return None
    exponent = math.log2(ratio)
    return round(exponent) if abs(exponent - round(exponent)) < NEAR else None
