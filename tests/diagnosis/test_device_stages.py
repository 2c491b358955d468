"""Divisions and output stages of devices, held against exact rationals and scalar integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from support.each import each
from tflq.diagnosis.mistakes.stages import NarrowAccumulator, fix, real
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.rounding import OF_HARDWARE, ROUNDINGS
from tflq.engine.numerics.stage_roundings import SingleRounding
from tflq.engine.numerics.stages import OutputPipeline


def rounded(value: Fraction, name: str) -> int:
    """An exact rational to an integer."""
    whole = math.floor(value)
    rest = value - whole
    if name == "towards minus infinity":
        return whole
    if name == "towards zero":
        return math.trunc(value)
    if name == "to odd":
        return whole | (rest != 0)
    if rest != Fraction(1, 2):
        return whole + (rest > Fraction(1, 2))
    up = {"half up": True, "half away from zero": value > 0, "half to even": whole % 2 == 1}
    return whole + up[name]


VALUES = [-(2**40), -1000, -25, -24, -13, -12, -11, -9, -8, -7, -5, -4, -3, -2, -1]
VALUES = [*VALUES, 0, *(-v for v in VALUES), 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("name", OF_HARDWARE)
def test_divisions_are_those_of_exact_rationals(name: str) -> None:
    for bits in (0, 1, 2, 3, 31, 45):
        expected = [rounded(Fraction(v, 1 << bits), name) for v in VALUES]
        got = OF_HARDWARE[name](np.array(VALUES, np.int64), np.array([bits], np.int64))
        assert got.tolist() == expected, bits


@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings_of_reals_are_those_of_exact_rationals(name: str) -> None:
    values = [v / 8 for v in range(-40, 41)]
    for dtype in (np.float32, np.float64):
        got = ROUNDINGS[name](np.array(values, dtype))
        assert got.tolist() == [rounded(Fraction(v), name) for v in values]


def mantissa_and_shift(real: float, bits: int, *, cut: bool) -> tuple[int, int]:
    """By the definition: real is about mantissa * 2**(shift - bits), of a mantissa that was Q31 before."""
    fraction, shift = math.frexp(real)
    q31 = math.floor(fraction * 2**31 + 0.5)
    kept = Fraction(q31, 2 ** (31 - bits))
    return (math.floor(kept) if cut else math.floor(kept + Fraction(1, 2))), shift


@each("name", OF_HARDWARE)
@each(("bits", "cut"), [(31, False), (15, False), (15, True)])
def test_one_division_is_exact(name: str, bits: int, cut: bool) -> None:
    reals = [0.0123456, 0.75, 1.5, 0.00390625]
    totals = [-70001, -12345, -1, 0, 1, 255, 12345, 70001]
    stage = fix(name, mantissa=bits, cut=cut)(reals)
    got = stage(np.repeat(np.array(totals, np.int32)[:, None], len(reals), axis=1))
    for c, one in enumerate(reals):
        mantissa, shift = mantissa_and_shift(one, bits, cut=cut)
        factor = Fraction(mantissa) * Fraction(2) ** (shift - bits)
        assert got[:, c].tolist() == [rounded(t * factor, name) for t in totals]


@each("first", ["towards minus infinity", "towards zero", "half up"])
@each("last", OF_HARDWARE)
def test_two_divisions_are_made_one_after_the_other(first: str, last: str) -> None:
    factor, totals = 0.0037, list(range(-5000, 5000, 37))
    mantissa, shift = mantissa_and_shift(factor, 31, cut=False)
    stage = fix(last, first)(factor)
    expected = [rounded(Fraction(rounded(Fraction(t * mantissa, 2**31), first), 2**-shift), last) for t in totals]
    assert stage(np.array(totals, np.int32)).tolist() == expected


def test_a_real_product_is_rounded_once() -> None:
    factor, totals = 0.0123, list(range(-400, 400, 7))
    stage = real("towards zero")([factor])
    assert stage(np.array(totals, np.int32)).tolist() == [math.trunc(t * factor) for t in totals]


@pytest.mark.parametrize(("bits", "wraps"), [(16, True), (16, False), (24, True)])
def test_narrow_accumulators_hold_or_wrap_sum_and_bias(bits: int, wraps: bool) -> None:
    half, bias = 1 << bits - 1, 1000
    totals = [-half - 5000, -half - 1, -half, -1, 0, half - 1001, half - 1, half, half + 99]

    def narrow(total: int) -> int:
        return (total + half) % (2 * half) - half if wraps else min(max(total, -half), half - 1)

    right = SingleRounding.of([0.01, 0.01])
    pipeline = OutputPipeline(
        NarrowAccumulator.of(right, bits, wraps=wraps), ZeroPoint(3), Clamp(-100, 100), np.dtype(np.int8)
    )
    got = pipeline(np.array([[t, t] for t in totals], np.int32), np.array([bias, bias], np.int32))
    fraction, shift = mantissa_and_shift(0.01, 31, cut=False)
    factor = Fraction(fraction) * Fraction(2) ** (shift - 31)
    codes = [min(max(rounded(narrow(t + bias) * factor, "half up") + 3, -100), 100) for t in totals]
    assert got.tolist() == [[c, c] for c in codes]
