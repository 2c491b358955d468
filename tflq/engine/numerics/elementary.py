"""exp, tanh, log and roots in gemmlowp's fixed point, and of TensorFlow r1.15.

exp, logistic, tanh, log, reciprocal and inverse square root in gemmlowp's fixed point.

Raw values as in rounding.py: `x` has `integer_bits` integer bits in a word of `width` bits (32 or 16). Results have 0
integer bits (Q0.31 or Q0.15) unless stated otherwise. Every product rounds half up (doubling_high_mul); sums wrap.

Source: gemmlowp fixedpoint/fixedpoint.h; LiteRT 2.3 tflite/kernels/internal/common.h for the last three.

Arithmetic of TensorFlow r1.15 that no later release has.

Source: TensorFlow r1.15 lite/kernels/internal/quantization_util.cc IntegerFrExp; lite/kernels/activations.cc LeakyRelu;
lite/kernels/internal/reference/reference_ops.h QuantizeLeakyRelu.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.numerics.libm import with_constants
from tflq.engine.numerics.multiplier import multiply_smaller_than_one, quantize_multiplier_smaller_than_one_exp
from tflq.engine.numerics.rounding import (
    constant,
    count_leading_zeros,
    doubling_high_mul,
    one,
    rescale,
    rounding_divide_by_pot,
    rounding_half_away,
    rounding_half_sum,
    saturating_add,
    saturating_rounding_multiply_by_pot,
    saturating_sub,
    wrap,
    wrap_int32,
)

# Constants as 32-bit raw values; 0 integer bits unless stated otherwise.
_EXP_MINUS_EIGHTH = 1895147668
_THIRD = 715827883
#: exp(-2**e) for e = -2..4
_EXP_MINUS_POT = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_48_OVER_17 = 1515870810  # 2 integer bits
_MINUS_32_OVER_17 = -1010580540  # 2 integer bits

_LOG_2 = 1488522236
_SQRT_HALF = 1518500250
_FOURTH_ROOT_HALF = 1805811301
_QUARTER = 536870912
_ALPHA_N = 117049297  # 11/240 * 2**(1/4)
_ALPHA_D = 127690142  # 1/20 * 2**(1/4)
_ALPHA_I = 1057819769  # 2 / 2**(1/4) - 2**(1/4)
_ALPHA_F = 638450708  # 1/4 * 2**(1/4)


@compiled
def exp_on_quarter_interval(x: Int, width: Int) -> Int:
    """Return exp(x) for x in [-1/4, 0), 0 integer bits: Taylor of fourth order around -1/8.

    Source: exp_on_interval_between_negative_one_quarter_and_0_excl. The last sum saturates in 16 bits and cannot
    overflow in 32.
    """
    centre = constant(_EXP_MINUS_EIGHTH, width)
    d = wrap(np.int64(x) + (np.int64(1) << np.int64(width - 4)), width)  # x + 1/8
    d2 = doubling_high_mul(d, d, width)
    d3 = doubling_high_mul(d2, d, width)
    d4 = doubling_high_mul(d2, d2, width)
    cubic = doubling_high_mul(wrap(rounding_divide_by_pot(d4, 2) + d3, width), constant(_THIRD, width), width)
    tail = rounding_divide_by_pot(wrap(cubic + d2, width), 1)  # d4/24 + d3/6 + d2/2
    return saturating_add(centre, doubling_high_mul(centre, wrap(d + tail, width), width), width)


@compiled
def exp_on_negative_values(x: Int, integer_bits: Int, width: Int) -> Int:
    """Return exp(x) for x <= 0: exp of x modulo 1/4, times exp(-2**e) for every bit 2**e of the rest.

    Source: exp_on_negative_values. With more than 5 integer bits, x below -32 gives 0; x = 0 gives the largest value.

    This function guarantees: it reads all seven constants, for any `x`.
    """
    if x == 0:
        return one(0, width)
    fraction = np.int64(width) - np.int64(1) - np.int64(integer_bits)
    if integer_bits > 5 and x < -(np.int64(32) << fraction):
        return np.int64(0)
    quarter = np.int64(1) << (fraction - np.int64(2))
    low = (np.int64(x) & (quarter - np.int64(1))) - quarter
    result = exp_on_quarter_interval(rescale(low, integer_bits, 0, width), width)
    rest = low - np.int64(x)  # a multiple of 1/4
    for k in range(7):
        if integer_bits > k - 2 and (rest >> (fraction + np.int64(k - 2))) & np.int64(1):
            result = doubling_high_mul(result, constant(_EXP_MINUS_POT[k], width), width)
    return result


@compiled
def _reciprocal_of_half_sum(x: Int, width: Int) -> Int:
    """Return 2 / (1 + x) with 2 integer bits, for x in [0, 1]: three Newton-Raphson steps from 48/17 - 32/17 * (1 +
    x)/2.
    """
    half = rounding_half_sum(x, one(0, width))
    result = wrap(
        constant(_48_OVER_17, width) + doubling_high_mul(half, constant(_MINUS_32_OVER_17, width), width), width
    )
    for _ in range(3):
        error = wrap(one(2, width) - doubling_high_mul(half, result, width), width)
        step = rescale(doubling_high_mul(result, error, width), 4, 2, width)
        result = wrap(result + step, width)
    return result


@compiled
def one_over_one_plus_x(x: Int, width: Int) -> Int:
    """Return 1 / (1 + x) for x in [0, 1], 0 integer bits. Source: one_over_one_plus_x_for_x_in_0_1."""
    return rescale(_reciprocal_of_half_sum(x, width), 1, 0, width)


@compiled
def one_minus_x_over_one_plus_x(x: Int, width: Int) -> Int:
    """Return (1 - x) / (1 + x) for x in [0, 1], 0 integer bits. Source: one_minus_x_over_one_plus_x_for_x_in_0_1."""
    return rescale(wrap(_reciprocal_of_half_sum(x, width) - one(2, width), width), 2, 0, width)


@compiled
def logistic(x: Int, integer_bits: Int, width: Int) -> Int:
    """Return 1 / (1 + exp(-x)); 1/2 for x = 0. Source: logistic."""
    if x == 0:
        return np.int64(1) << np.int64(width - 2)
    positive = one_over_one_plus_x(exp_on_negative_values(-abs(np.int64(x)), integer_bits, width), width)
    return positive if x > 0 else one(0, width) - positive


@compiled
def tanh(x: Int, integer_bits: Int, width: Int) -> Int:
    """Return tanh(x) = (1 - exp(-2x)) / (1 + exp(-2x)); the factor 2 is one integer bit more. Source: tanh."""
    if x == 0:
        return np.int64(0)
    decay = exp_on_negative_values(-abs(np.int64(x)), np.int64(integer_bits) + np.int64(1), width)
    magnitude = one_minus_x_over_one_plus_x(decay, width)
    return magnitude if x > 0 else wrap(-magnitude, width)


#: Loops: (x, integer bits, width, out).
logistic_into, tanh_into = with_constants(logistic, 40), with_constants(tanh, 40)


@compiled
def reciprocal(x: Int, integer_digits: Int) -> tuple[Int, Int]:
    """Return (mantissa, bits over unit) of 1/x, for int32 x > 0 with `integer_digits` integer bits: the softmax
    reciprocal.

    1/x = mantissa / 2**31 / 2**(bits over unit), mantissa Q0.31 in [2**30, 2**31). Source: GetReciprocal.
    """
    headroom_plus_one = count_leading_zeros(x, 32)
    fraction = (np.int64(x) << headroom_plus_one) - (np.int64(1) << np.int64(31))
    return one_over_one_plus_x(fraction, 32), np.int64(integer_digits) - headroom_plus_one


@compiled
def inverse_sqrt(x: Int) -> tuple[Int, Int]:
    """Return (mantissa Q31, right shift) of 1/sqrt(x) for int32 x >= 0; 0 counts as 1. Right shifts are positive.

    Source: GetInvSqrtQuantizedMultiplierExp with reverse_shift 1. Five Newton-Raphson steps from 1 in Q3.28.
    """
    if x <= 1:
        return np.int64(2147483647), np.int64(0)
    shift = np.int64(11)
    scaled = np.int64(x)
    while scaled >= 1 << 29:
        scaled //= np.int64(4)
        shift += np.int64(1)
    pairs = (count_leading_zeros(scaled, 32) - np.int64(1)) // np.int64(2) - np.int64(1)
    shift -= pairs
    scaled <<= np.int64(2) * pairs
    half_input = rounding_divide_by_pot(scaled >> np.int64(1), 1)
    result = one(3, 32)
    for _ in range(5):
        cube = doubling_high_mul(doubling_high_mul(result, result, 32), result, 32)  # 9 integer bits
        cube = rescale(cube, 9, 3, 32)
        step = doubling_high_mul((1 << 28) + (1 << 27), result, 32) - doubling_high_mul(half_input, cube, 32)
        result = rescale(wrap_int32(step), 6, 3, 32)
    result = doubling_high_mul(result, _SQRT_HALF, 32)
    if shift < 0:
        return wrap_int32(result << -shift), np.int64(0)
    return result, shift


@compiled
def log_x_for_x_greater_than_or_equal_to_1(x: Int, input_bits: Int, output_bits: Int) -> Int:
    """Return the natural logarithm of an int32 `x` > 0 with `input_bits` integer bits; the result has `output_bits`.

    Source: log_x_for_x_greater_than_or_equal_to_1_impl. The nearer of two normalisations is taken, around 2**-1/4 or
    2**-3/4; then a Pade quotient.
    """
    accumulator_bits = np.int64(output_bits) + np.int64(1)
    to_raw = np.int64(31) - accumulator_bits
    quarter = rescale(_QUARTER, 0, accumulator_bits, 32)

    headroom_plus_one = count_leading_zeros(x, 32)
    scaled = saturating_rounding_multiply_by_pot(x, headroom_plus_one - np.int64(1), 32)
    r_a = saturating_rounding_multiply_by_pot(doubling_high_mul(scaled, _SQRT_HALF, 32), 1, 32)
    power_a = saturating_rounding_multiply_by_pot(np.int64(input_bits) - headroom_plus_one, to_raw, 32)
    power_a = saturating_add(power_a, quarter, 32)

    headroom = count_leading_zeros(doubling_high_mul(x, _SQRT_HALF, 32), 32) - np.int64(1)
    r_b = saturating_rounding_multiply_by_pot(x, headroom, 32)
    power_b = saturating_rounding_multiply_by_pot(np.int64(input_bits) - headroom, to_raw, 32)
    power_b = saturating_sub(power_b, quarter, 32)

    r = min(r_a, r_b)
    power = max(power_a, power_b)
    p = rounding_half_sum(r, _FOURTH_ROOT_HALF)
    q = wrap_int32(np.int64(2) * (r - np.int64(_FOURTH_ROOT_HALF)))
    square = doubling_high_mul(q, q, 32)
    numerator = wrap_int32(
        doubling_high_mul(q, r, 32) + doubling_high_mul(doubling_high_mul(q, square, 32), _ALPHA_N, 32)
    )
    inner = wrap_int32(np.int64(_ALPHA_I) + q + doubling_high_mul(_ALPHA_D, square, 32))
    denominator_minus_one = wrap_int32(doubling_high_mul(p, inner, 32) + doubling_high_mul(_ALPHA_F, q, 32))
    quotient = doubling_high_mul(
        rescale(numerator, 0, accumulator_bits, 32), one_over_one_plus_x(denominator_minus_one, 32), 32
    )
    total = wrap_int32(doubling_high_mul(power, _LOG_2, 32) + quotient)
    return rescale(total, accumulator_bits, output_bits, 32)


_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


def integer_frexp(x: float) -> tuple[int, int]:
    """Return (fraction Q31, exponent) of a float64 by integer operations alone, for builds without floating point.

    Not quite frexp: ties round down in magnitude, a fraction may round up to 2**31, and a subnormal is given a leading
    one that it does not have. NaN gives (0, INT32_MAX), infinities the int64 limits with INT32_MAX.
    """
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    negative, exponent, mantissa = bits >> 63, bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if bits & ~(1 << 63) == 0:
        return 0, 0
    if exponent == 0x7FF:
        if mantissa >> 22:
            return 0, _INT32_MAX
        return (-_INT64_MAX - 1 if negative else _INT64_MAX), _INT32_MAX
    fraction = (1 << 30) + (mantissa >> 22)
    if mantissa & (1 << 22) - 1 > 1 << 21:
        fraction += 1
    return (-fraction if negative else fraction), exponent - 1023 + 1


@dataclass(frozen=True, slots=True)
class LeakyRelu:
    """uint8 LEAKY_RELU of r1.15. Inputs at the zero point or above are copied, for any output quantization.

    alpha is quantized with the input's own scale and zero point. The kernel keeps its centred value in a function-local
    static: the first LEAKY_RELU evaluated in a process sets it for all later ones. A value of this class is one node;
    the argument `centred_alpha` is the alpha that the process uses.
    """

    input_zero_point: int  # LSB of input
    output_zero_point: int  # LSB of output
    code_of_alpha: int  # LSB of input
    mantissa: int  # Q31
    shift: int  # <= 0

    @classmethod
    def of(
        cls,
        input_scale: np.float32,
        input_zero_point: int,
        output_scale: np.float32,
        output_zero_point: int,
        alpha: np.float32,
    ) -> LeakyRelu:
        """Prepare the node. The real multiplier, scale**2 / output scale in float32, has to be in (0, 1)."""
        ratio = np.float32(alpha) / np.float32(input_scale)
        code = rounding_half_away(float(np.float32(input_zero_point) + ratio))
        real = np.float32(input_scale) * np.float32(input_scale) / np.float32(output_scale)
        mantissa, shift = quantize_multiplier_smaller_than_one_exp(float(real))
        return cls(input_zero_point, output_zero_point, min(max(code, 0), 255), mantissa, shift)

    @property
    def centred_alpha(self) -> int:
        """alpha in LSB of input."""
        return self.code_of_alpha - self.input_zero_point

    def __call__(self, x: NDArray[np.uint8], centred_alpha: int | None = None) -> NDArray[np.uint8]:
        """Return the codes of `x`. `centred_alpha` is the process's first one, if another node set it."""
        alpha = self.centred_alpha if centred_alpha is None else centred_alpha
        codes = np.arange(256, dtype=np.uint8)
        for code in range(self.input_zero_point):
            product = (code - self.input_zero_point) * alpha
            scaled = multiply_smaller_than_one(product, self.mantissa, self.shift) + self.output_zero_point
            codes[code] = min(max(int(scaled), 0), 255)
        return codes[x]
