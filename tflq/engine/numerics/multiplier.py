"""Real multipliers as a 31-bit mantissa and a power-of-two shift, and their application to accumulators.

A `shift` above 0 shifts to the left everywhere. Real multipliers are float64, mantissas Q31 in [2**30, 2**31). Source:
LiteRT 2.3 tflite/kernels/internal/quantization_util.cc and common.cc.

Real multipliers from scales, in the precisions in which runtimes compute them: one field of their arithmetic.

LiteRT 2.3 computes many of them in float32 (activations.cc ReluPrepare, LeakyReluPrepare; mul.cc Prepare) or with a
float32 product of two scales (kernel_util.cc GetQuantizedConvolutionMultipler). LiteRT 2.4 and TensorFlow Lite Micro
compute the same multipliers in float64.

Values that prepare steps compute from scales: softmax scaling, input radius, powers of two, nudged ranges.

Source: TensorFlow r1.15 and LiteRT 2.3 tflite/kernels/internal/quantization_util.cc. Real numbers are Python floats
(float64) unless their type is float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.numerics.libm import logf
from tflq.engine.numerics.rounding import (
    divide_by_pot_half_away,
    rounding_half_away,
    saturating_rounding_doubling_high_mul,
    wrap,
    wrap_int32,
)
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
    mantissa = rounding_half_away(fraction * 2.0**31)
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


RealScales = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class OperatorScales:
    """Scales of an operator's operands, float32 arrays that broadcast: a code is a * b / y LSB of accumulator.

    `b` is None for operators with one factor.
    """

    a: Floats
    b: Floats | None
    y: Floats

    @property
    def real(self) -> RealScales:
        """The real multipliers in float64 throughout."""
        return in_float64(self)


def in_float64(s: OperatorScales) -> RealScales:
    """Return multipliers in float64 throughout."""
    wide = s.a.astype(np.float64)
    return np.asarray((wide if s.b is None else wide * s.b.astype(np.float64)) / s.y.astype(np.float64))


def in_float32(s: OperatorScales) -> RealScales:
    """Return multipliers in float32, the product of scales first."""
    return np.asarray((s.a if s.b is None else s.a * s.b) / s.y).astype(np.float64)


def product_last(s: OperatorScales) -> RealScales:
    """Return multipliers in float32, the quotient first."""
    quotient = s.a / s.y
    return np.asarray(quotient if s.b is None else quotient * s.b).astype(np.float64)


def of_float32_product(s: OperatorScales) -> RealScales:
    """Return a float32 product of scales, divided in float64.

    Source: LiteRT 2.3 kernel_util.cc GetQuantizedConvolutionMultipler.
    """
    product = s.a if s.b is None else s.a * s.b
    return np.asarray(product.astype(np.float64) / s.y.astype(np.float64))


def times_reciprocal(s: OperatorScales) -> RealScales:
    """Return multipliers in float32, times the reciprocal of the output's scale."""
    product = s.a if s.b is None else s.a * s.b
    return np.asarray(product * (np.float32(1) / s.y)).astype(np.float64)


def round_to_float32(s: OperatorScales) -> RealScales:
    """Return float64 multipliers rounded to float32 once."""
    return in_float64(s).astype(np.float32).astype(np.float64)


def round_to_float16(s: OperatorScales) -> RealScales:
    """Return float64 multipliers rounded to float16 once."""
    return in_float64(s).astype(np.float16).astype(np.float64)


#: Ways to compute multipliers from scales. "given" is the one that a kernel prepares.
MULTIPLIERS: Mapping[str, Callable[[OperatorScales], RealScales]] = {
    "given": in_float64,
    "float64": in_float64,
    "float32": in_float32,
    "float32, the product of scales last": product_last,
    "float32 product of scales, float64 quotient": of_float32_product,
    "float32, times the output scale's reciprocal": times_reciprocal,
    "float64 rounded to float32": round_to_float32,
    "float64 rounded to float16": round_to_float16,
}


#: The largest multiplier of softmax, for double rounding.
MAX_DOUBLE_ROUNDING = 2.0**31 - 1.0


def preprocess_softmax_scaling(
    beta: float,
    input_scale: float,
    integer_bits: int,
    largest: float = MAX_DOUBLE_ROUNDING,
    quantize: QuantizeMultiplier = quantize_multiplier,
) -> Multiplier:
    """Return beta * scale in a word with `integer_bits` integer bits, at most `largest`, as a multiplier that shifts
    left.

    Raises UndefinedResultError unless it exceeds 1; the original aborts. Source: PreprocessSoftmaxScaling.
    """
    unit = int(wrap(1 << (31 - integer_bits), 32))
    real = min(float(beta) * float(input_scale) * unit, largest)
    return quantize_multiplier_greater_than_one(real, quantize)


def preprocess_log_softmax_scaling(
    beta: float,
    input_scale: float,
    integer_bits: int,
    largest: float = MAX_DOUBLE_ROUNDING,
    quantize: QuantizeMultiplier = quantize_multiplier,
) -> tuple[Multiplier, Multiplier]:
    """Return the softmax scaling, and its inverse, whose shift is <= 0.

    Source: PreprocessLogSoftmaxScalingExp.
    """
    scaling = preprocess_softmax_scaling(beta, input_scale, integer_bits, largest, quantize)
    if scaling.shift > 31:
        raise UndefinedResultError("PreprocessLogSoftmaxScalingExp", f"a left shift of {scaling.shift} bits")
    inverse = int(wrap(1 << (31 - scaling.shift), 32)) / scaling.mantissa
    return scaling, quantize_multiplier_smaller_than_one_exp(inverse, quantize)


def calculate_input_radius(integer_bits: int, left_shift: int, signed_bits: int = 31) -> int:
    """Return the largest input difference whose scaled value stays representable. Source: CalculateInputRadius."""
    largest = float((1 << integer_bits) - 1) * (1 << (signed_bits - integer_bits)) / (1 << left_shift)
    return math.floor(largest)


def check_log2(x: np.float32, tolerance: float = float(np.float32(1e-3))) -> tuple[int, bool]:
    """Return log2 of `x`, rounded, and whether `x` is near enough to that power of two. All in float32, by the host's
    logf.

    Source: CheckedLog2. r1.15 compares with the float64 1e-3: `tolerance`.
    """
    per_octave = np.float32(1) / logf(np.float32(2))[()]
    log2 = logf(np.float32(x))[()] * per_octave
    exponent = rounding_half_away(float(log2))
    return exponent, float(abs(log2 - np.float32(exponent))) < tolerance


def nudge_quantization_range(
    low: np.float32, high: np.float32, lowest_code: int, highest_code: int
) -> tuple[np.float32, np.float32, np.float32]:
    """Return (low, high, scale), all float32, moved so that 0 is a code. The zero point is held in 16 unsigned bits.

    Source: NudgeQuantizationRange.
    """
    first, last = np.float32(lowest_code), np.float32(highest_code)
    with np.errstate(all="ignore"):
        scale = (np.float32(high) - np.float32(low)) / (last - first)
        exact = first - np.float32(low) / scale
        if exact < first:
            zero_point = lowest_code
        elif exact > last:
            zero_point = highest_code
        else:
            zero_point = rounding_half_away(float(exact))
        stored = np.float32(zero_point & 0xFFFF)
        return (first - stored) * scale, (last - stored) * scale, scale
