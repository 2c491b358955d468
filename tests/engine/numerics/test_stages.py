"""Output stages and pipelines: the same codes whatever the shape, the layout and the type of the accumulator."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from support.each import each
from support.sweeping import few
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import (
    DoubleRounding,
    FloatRounding,
    HalfUpTwice,
    SingleRounding,
    WideRounding,
    tabulate,
)
from tflq.engine.numerics.stages import OutputPipeline, type_range


def fixed_point(real: float) -> tuple[int, int]:
    """Mantissa of 31 bits and exponent of a real multiplier. Source: gemmlowp, TFLite's QuantizeMultiplier."""
    fraction, exponent = math.frexp(real)
    mantissa = math.floor(Fraction(fraction) * 2**31 + Fraction(1, 2))
    return (mantissa // 2, exponent + 1) if mantissa == 2**31 else (mantissa, exponent)


def half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def half_away(x: Fraction) -> int:
    return half_up(x) if x >= 0 else -half_up(-x)


def scaled(stage_type: type, accumulator: int, real: float) -> int:
    """An accumulator times a multiplier below 1, by the definition of the stage, in exact fractions."""
    if stage_type is FloatRounding:
        return half_away(Fraction(float(accumulator) * real))
    mantissa, exponent = fixed_point(real)
    if stage_type is DoubleRounding:  # SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT
        return half_away(Fraction(half_up(Fraction(accumulator * mantissa, 2**31)), 2**-exponent))
    if stage_type is SingleRounding:
        return half_up(Fraction(accumulator * mantissa, 2 ** (31 - exponent)))
    short = min(half_up(Fraction(mantissa, 2**16)), 2**15 - 1)  # int64 accumulators: 15 bits of the mantissa
    return half_up(Fraction(accumulator * short, 2 ** (15 - exponent)))


def code(stage_type: type, real: float, accumulator: int, zero_point: int, low: int, high: int) -> int:
    """One element, derived from the definition alone."""
    return min(max(scaled(stage_type, accumulator, real) + zero_point, low), high)


@each("stage_type", [DoubleRounding, SingleRounding, WideRounding, FloatRounding])
@pytest.mark.parametrize("channels", few([1, 3, 64, 1500], 1, 64))
@each("per_channel", [False, True])
def test_every_element_is_scaled_by_its_channel(stage_type, channels, per_channel):
    rng = np.random.default_rng(channels)
    real = 2.0 ** rng.integers(-9, -5, channels if per_channel else 1) * rng.choice([1, 0.75, 0.6], 1)
    accumulator = rng.integers(-(2**14), 2**14, (2, 3, channels))
    bias = rng.integers(-99, 99, channels)
    expected = [
        code(stage_type, float(real[i % channels if per_channel else 0]), int(a + bias[i % channels]), -3, -128, 127)
        for i, a in enumerate(accumulator.reshape(-1))
    ]
    pipeline = OutputPipeline(stage_type.of(real), ZeroPoint(-3), Clamp(-128, 127), np.dtype(np.int8))
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        assert pipeline(accumulator.astype(dtype), bias.astype(np.int32)).reshape(-1).tolist() == expected
    summed = (accumulator + bias).astype(np.int32)
    assert pipeline(summed).reshape(-1).tolist() == expected
    assert pipeline(np.asfortranarray(summed)).reshape(-1).tolist() == expected
    assert pipeline(summed).dtype == np.int8


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 5000])
def test_flat_arrays_of_any_size(size):
    accumulator = np.arange(size, dtype=np.int32) * 37 - 4000
    pipeline = OutputPipeline(DoubleRounding.of(2.0**-9), ZeroPoint(5), Clamp(0, 255), np.dtype(np.uint8))
    expected = [code(DoubleRounding, 2.0**-9, int(a), 5, 0, 255) for a in accumulator]
    assert pipeline(accumulator).tolist() == expected


def test_scalars_and_empty_arrays():
    pipeline = OutputPipeline(DoubleRounding.of(0.5), ZeroPoint(0), Clamp(-128, 127), np.dtype(np.int8))
    assert pipeline(np.array(7, np.int32)).tolist() == 4
    assert pipeline(np.zeros((3, 0, 2), np.int32)).shape == (3, 0, 2)


def test_accumulator_and_bias_wrap_where_the_register_has_32_bits():
    top = np.array([[2**31 - 1]], np.int32)
    one = np.ones(1, np.int32)
    unclamped = {"zero_point": ZeroPoint(0), "clamp": Clamp(-(2**31), 2**31 - 1), "dtype": np.dtype(np.int32)}
    assert OutputPipeline(DoubleRounding.of(0.5), **unclamped)(top, one).tolist() == [[-(2**30)]]
    assert OutputPipeline(FloatRounding.of(1.0), **unclamped)(top, one).tolist() == [[-(2**31)]]
    half = OutputPipeline(FloatRounding.of_wide(0.5), **unclamped)
    assert half(top.astype(np.int64), one).tolist() == [[2**30]]


def test_a_product_beyond_int32_is_int32_min_and_the_zero_point_wraps():
    accumulator = np.array([100, -100], np.int32)
    for zero_point, expected in ((-1, 127), (0, -128), (1, -128)):
        pipeline = OutputPipeline(FloatRounding.of(1e9), ZeroPoint(zero_point), Clamp(-128, 127), np.dtype(np.int8))
        assert pipeline(accumulator).tolist() == [expected] * 2


def test_known_multipliers():
    stage = DoubleRounding.of_fixed(3 << 29, -1)
    assert stage.real.tolist() == [0.375]
    assert stage(np.array([4, -4, 1000], np.int32)).tolist() == [2, -2, 375]


def test_left_shifts_beyond_30_are_taken_modulo_32_unless_they_saturate():
    accumulator = np.array([3, -3], np.int32)
    assert DoubleRounding.of(2.0**40).shift.tolist() == [41]
    assert DoubleRounding.of(2.0**40)(accumulator).tolist() == DoubleRounding.of(2.0**8)(accumulator).tolist()
    assert SingleRounding.of(2.0**40).shift.tolist() == [30]


def test_the_left_shift_wraps():
    """1.0 is 2**30 shifted left by one: INT32_MIN loses its only bit."""
    assert DoubleRounding.of(1.0)(np.array([-(2**31), 2**30, 5], np.int32)).tolist() == [0, -(2**30), 5]


def test_double_and_single_rounding_part_at_negative_ties():
    """-2 / 4: the high multiplication gives -1 exactly, the shift rounds -1/2 away; one rounding rounds it up."""
    accumulator = np.array([-2, 2], np.int32)
    assert DoubleRounding.of(0.25)(accumulator).tolist() == [-1, 1]
    assert SingleRounding.of(0.25)(accumulator).tolist() == [0, 1]


def test_type_range():
    assert type_range(np.int8) == (-128, 127)
    assert type_range(np.uint16) == (0, 65535)


@each("stage_type", [DoubleRounding, HalfUpTwice, SingleRounding])
@each("real", [2.0**-31, 3e-5, 0.25, 0.4999, 0.5, 1.0, 1.7, 77.3, 2.0**31])
def test_tables_are_what_the_loop_gives(stage_type, real):
    random = np.random.default_rng(3)
    near = np.arange(-300, 300)
    values = np.concatenate([near, near + 2**31 - 301, near - 2**31 + 300, random.integers(-(2**31), 2**31, 3000)])
    stage = stage_type.of(real)
    np.testing.assert_array_equal(tabulate(stage, values.astype(np.int32)), stage(values.astype(np.int32)))
