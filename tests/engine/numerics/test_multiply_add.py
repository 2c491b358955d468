"""a * b + c with one rounding, against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tflq.engine.numerics.estimates import fuse, multiply_add_once, round_apart, sum_to_odd

F = np.float32


def nearest(exact: Fraction) -> np.float32:
    """The float32 nearest to `exact`, half to even, of normal size."""
    if exact == 0:
        return F(0)
    size, exponent = abs(exact), 0
    while size >= 2**24:
        size, exponent = size / 2, exponent + 1
    while size < 2**23:
        size, exponent = size * 2, exponent - 1
    return F(np.ldexp(float(round(size)), exponent)) * F(1 if exact > 0 else -1)  # round() is half to even


def operands(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Products and addends of like size; every second addend makes a tie but for the product's last bits."""
    a, b = (rng.standard_normal(2000).astype(F) for _ in range(2))
    c = rng.standard_normal(2000).astype(F)
    a[::2] = F(2.0) ** -24 * (1 + F(2.0) ** -23 * rng.integers(-1, 2, 1000).astype(F))
    b[::2] = 1 + F(2.0) ** -23 * rng.integers(-2, 3, 1000).astype(F)
    c[::2] = 1 + F(2.0) ** -22 * rng.integers(0, 1000, 1000).astype(F)
    return a, b, c


def test_fused_is_the_exact_value_rounded_once() -> None:
    a, b, c = operands(np.random.default_rng(1))
    want = [
        nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)
    ]
    np.testing.assert_array_equal(fuse(a, b, c), np.array(want, F))
    np.testing.assert_array_equal([multiply_add_once(*each) for each in zip(a, b, c, strict=True)], np.array(want, F))


def test_one_rounding_and_two_in_float64_differ() -> None:
    """The exact value lies 2**-70 below a tie: float64 loses that, and the tie then goes to even, which is up."""
    a, b, c = F(2.0**-24) * (F(1) + F(2.0**-23)), F(1) - F(2.0**-23), F(1) + F(2.0**-23)
    assert fuse(np.array([a]), b, c)[0] == nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
    assert F(np.float64(a) * np.float64(b) + np.float64(c)) != fuse(np.array([a]), b, c)[0]


def test_apart_rounds_twice() -> None:
    a = np.array([1 + 2.0**-12], F)
    assert round_apart(a, a[0], F(-1))[0] == a[0] * a[0] - F(1)
    assert fuse(a, a[0], F(-1))[0] != round_apart(a, a[0], F(-1))[0]


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays(odd: float) -> None:
    np.testing.assert_array_equal(fuse(np.array([odd], F), F(1), F(1)), np.array([odd], F))
    np.testing.assert_array_equal(multiply_add_once(F(odd), F(1), F(1)), F(odd))
    assert multiply_add_once(F(3e38), F(2), F(-3e38)) == fuse(np.array([3e38], F), F(2), F(-3e38))[0]


def test_exact_sums_are_left_alone() -> None:
    assert sum_to_odd(np.array([1.0, 2.0**60]), np.array([2.0, -(2.0**60)])).tolist() == [3.0, 0.0]
