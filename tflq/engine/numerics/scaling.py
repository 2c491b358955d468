"""Values that prepare steps compute from scales: softmax scaling, input radius, powers of two, nudged ranges.

Source: TensorFlow r1.15 and LiteRT 2.3 tflite/kernels/internal/quantization_util.cc. Real numbers are Python floats
(float64) unless their type is float32.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.numerics.libm import logf
from tflq.engine.numerics.multiplier import (
    Multiplier,
    QuantizeMultiplier,
    quantize_multiplier,
    quantize_multiplier_greater_than_one,
    quantize_multiplier_smaller_than_one_exp,
)
from tflq.engine.numerics.rounding import half_away, wrap
from tflq.errors import UndefinedResultError

#: The largest multiplier of softmax, for double and for single rounding.
MAX_DOUBLE_ROUNDING = 2.0**31 - 1.0
MAX_SINGLE_ROUNDING = 2.0**30 - 1.0


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
    exponent = half_away(float(log2))
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
            zero_point = half_away(float(exact))
        stored = np.float32(zero_point & 0xFFFF)
        return (first - stored) * scale, (last - stored) * scale, scale
