"""Primitives against the same formulas in Python's unbounded integers and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.vectors import each
from tflq.engine.numerics import elementary, multiplier, rounding
from tflq.engine.numerics import multiplier as scaling
from tflq.engine.numerics import rounding as bits
from tflq.engine.numerics import rounding as fixedpoint

INT32 = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), 2**31 - 1, 0, 1, -1, 2**30, -(2**30)])
MANTISSA = st.integers(2**30, 2**31 - 1)


def half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def half_away(x: Fraction) -> int:
    return half_up(x) if x >= 0 else -half_up(-x)


def wrapped(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


@given(INT32, INT32)
def test_doubling_high_mul_is_half_up_and_saturates_once(a, b):
    exact = half_up(Fraction(a * b, 2**31))
    got = int(fixedpoint.saturating_rounding_doubling_high_mul(a, b))
    assert got == min(exact, 2**31 - 1)
    assert (exact == 2**31) == (a == b == -(2**31))


@given(INT32, INT32)
def test_half_up_is_what_nudge_and_truncation_make(a, b):
    """gemmlowp's own words: a nudge of the product's sign, then a division that truncates."""
    product = a * b
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    truncated = abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)
    assert truncated == half_up(Fraction(product, 2**31))


@given(st.integers(-(2**62), 2**62), st.integers(0, 31))
def test_division_by_a_power_of_two(x, exponent):
    exact = Fraction(x, 2**exponent)
    assert int(rounding.divide_by_pot_half_away(x, exponent)) == half_away(exact)
    assert int(rounding.divide_by_pot_half_up(x, exponent)) == half_up(exact)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([8, 16, 32, 64]))
def test_wrap(x, width):
    assert int(rounding.wrap(x, width)) == (x + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)


@given(INT32, MANTISSA, st.integers(-31, 30))
def test_double_rounding(x, mantissa, shift):
    shifted = wrapped(x << max(shift, 0))
    high = min(half_up(Fraction(shifted * mantissa, 2**31)), 2**31 - 1)
    assert int(multiplier.multiply_double_rounding(x, mantissa, shift)) == half_away(
        Fraction(high, 2 ** max(-shift, 0))
    )


@given(INT32, MANTISSA, st.integers(-31, 30))
def test_single_rounding(x, mantissa, shift):
    exact = wrapped(half_up(Fraction(x * mantissa, 2 ** (31 - shift))))
    assert int(multiplier.multiply_single_rounding(x, mantissa, shift)) == exact


@given(st.integers(-(2**47), 2**47 - 1), MANTISSA, st.integers(-31, 7))
def test_wide_rounding(x, mantissa, shift):
    reduced = min((mantissa + 2**15) >> 16, 2**15 - 1)
    exact = wrapped(half_up(Fraction(x * reduced, 2 ** (15 - shift))))
    assert int(multiplier.multiply_wide(x, mantissa, shift)) == exact


@given(st.floats(2.0**-31, 2.0**30))
def test_quantized_multiplier_is_the_nearest_mantissa(real):
    mantissa, shift = multiplier.quantize_multiplier(real)
    assert 2**30 <= mantissa < 2**31
    error = abs(Fraction(mantissa) * Fraction(2) ** (shift - 31) - Fraction(real))
    assert error <= Fraction(1, 2) * Fraction(2) ** (shift - 31)


@pytest.mark.parametrize("real", [math.inf, -math.inf, math.nan])
def test_a_multiplier_that_is_no_number_has_mantissa_0_as_on_x86(real):
    assert multiplier.quantize_multiplier(real) == (0, 0)


@given(st.floats(-(2.0**52), 2.0**52))
def test_rounding_of_floats(x):
    exact = half_away(Fraction(x))
    assert rounding.rounding_half_away(x) == exact
    assert int(rounding.round_half_away(x)) == exact
    assert int(rounding.nearest_half_away(np.array([x]))[0]) == exact
    assert int(rounding.round_half_even(x)) == round(Fraction(x))


def test_rounding_just_below_a_half():
    """0.5 added to the largest float below 0.5 would round up to 1."""
    for dtype in (np.float32, np.float64):
        below = np.nextafter(dtype(0.5), dtype(0))
        assert rounding.nearest_half_away(np.array([below, -below, 0.5, -0.5, 2.5], dtype)).tolist() == [0, 0, 1, -1, 3]
    assert float(rounding.round_half_away(0.49999999999999994)) == 0


def test_conversion_to_int32_outside_its_range_is_x86s():
    reals = np.array([2.0**31, -(2.0**31), -(2.0**31) - 1, np.inf, -np.inf, np.nan, 2.0**31 - 1, 1e300])
    low = -(2**31)
    expected = [low, low, low, low, low, low, 2**31 - 1, low]
    assert rounding.floats_to_int32(reals).tolist() == expected
    assert each(rounding.float_to_int32, reals).tolist() == expected


@given(st.integers(0, 2**32 - 1))
def test_leading_zeros(x):
    assert int(bits.count_leading_zeros(x, 32)) == 32 - x.bit_length()


@given(INT32)
def test_leading_sign_bits(x):
    digits = format(x % 2**32, "032b")
    same = len(digits) - len(digits.lstrip(digits[0]))
    assert int(bits.count_leading_sign_bits(x, 32)) == same - 1


@given(st.integers(1, 2**31 - 1), st.integers(1, 31))
def test_reciprocal_is_close_and_normalised(x, digits):
    """Within 2**-27 of 1/x, relatively: three Newton steps of rounded products, at their worst."""
    mantissa, over_unit = elementary.reciprocal(x, digits)
    value = Fraction(int(mantissa), 2**31) / Fraction(2) ** int(over_unit)
    exact = 1 / Fraction(x, 2 ** (31 - digits))
    assert 2**30 - 4 <= mantissa <= 2**31 - 1
    assert abs(value / exact - 1) < Fraction(1, 2**27)


@given(st.integers(2, 2**31 - 1))
def test_inverse_square_root_is_close(x):
    """Five Newton steps from 1 leave an error of about 1e-5 at the far end of the range."""
    mantissa, shift = elementary.inverse_sqrt(x)
    assert abs(int(mantissa) / 2**31 / 2 ** int(shift) * math.sqrt(x) - 1) < 2e-5


@pytest.mark.parametrize("x", [0, 1])
def test_inverse_square_root_of_zero_and_one_is_almost_one(x):
    assert [int(v) for v in elementary.inverse_sqrt(x)] == [2**31 - 1, 0]


@given(st.integers(2**19, 2**31 - 1))
def test_logarithm_is_close(x):
    """12 integer bits in, 5 out: as LOG_SOFTMAX has it."""
    raw = int(elementary.log_x_for_x_greater_than_or_equal_to_1(x, 12, 5))
    assert abs(raw / 2**26 - math.log(x / 2**19)) < 2**-24


@given(st.integers(0, 31), st.integers(1, 8), st.sampled_from([15, 31]))
def test_input_radius_is_the_largest_difference_that_fits(left_shift, integer_bits, signed_bits):
    radius = scaling.calculate_input_radius(integer_bits, left_shift, signed_bits)
    limit = (2**integer_bits - 1) * 2 ** (signed_bits - integer_bits)
    assert radius * 2**left_shift <= limit < (radius + 1) * 2**left_shift


@given(st.integers(-31, 30), INT32)
def test_saturating_multiplication_by_a_power_of_two(exponent, x):
    exact = half_away(Fraction(x) * Fraction(2) ** exponent)
    got = int(fixedpoint.saturating_rounding_multiply_by_pot(x, exponent, 32))
    assert got == max(-(2**31), min(2**31 - 1, exact))
