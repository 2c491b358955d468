"""From ranges to scales and zero points, and codes: against the formulas in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.engine.kernels.checks import code_limits
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, Range, asymmetric, extent, hull, symmetric

ENDS = st.floats(-1e6, 1e6, allow_nan=False, width=32)
NARROW = (TensorType.INT8, TensorType.UINT8)


@pytest.mark.parametrize("type_", [*NARROW, TensorType.INT16])
@given(first=ENDS, second=ENDS)
def test_a_range_is_covered_to_half_a_step_and_zero_is_exact(type_: TensorType, first: float, second: float) -> None:
    wanted = Range.of(min(first, second), max(first, second))
    params = asymmetric(wanted, type_)
    least, greatest = code_limits(type_)
    zero_point, step = int(params.zero_point[0]), Fraction(float(params.scale[0]))
    assert least <= zero_point <= greatest
    low, high = step * (least - zero_point), step * (greatest - zero_point)
    slack = step * (Fraction(1, 2) + Fraction(1, 2**10))  # the zero point's rounding, and the scale's to float32
    assert low - slack <= min(Fraction(first), Fraction(second), Fraction(0))
    assert high + slack >= max(Fraction(first), Fraction(second), Fraction(0))
    assert params.decode(params.encode(np.zeros(1, np.float32)))[0] == 0


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=20))
def test_codes_are_the_nearest_and_symmetric_ones_leave_the_least_code_out(values: list[float]) -> None:
    array = np.array(values, np.float32)
    params = symmetric(extent(array), TensorType.INT8)
    codes = params.encode(array)
    assert codes.min() >= -127
    away = np.abs(codes * params.scale.astype(np.float64) - array)
    assert (away <= 0.5000001 * params.scale).all()


def test_each_channel_has_its_own_scale() -> None:
    values = np.array([[1.0, -2.0], [0.5, 0.25], [0.0, 0.0]], np.float32)
    params = symmetric(extent(values, 0), TensorType.INT8, 0)
    np.testing.assert_array_equal(params.scale[:2], np.array([2, 0.5], np.float32) / np.float32(127))
    assert np.isfinite(params.scale).all()
    assert (params.scale > 0).all()
    np.testing.assert_array_equal(params.encode(values), [[64, -127], [127, 64], [0, 0]])


def test_sixteen_bits_are_symmetric() -> None:
    params = asymmetric(Range.of(-1.0, 3.0), TensorType.INT16)
    assert int(params.zero_point[0]) == 0
    assert params.scale[0] == np.float32(3 / 32767)


@pytest.mark.parametrize("type_", NARROW)
def test_a_tensor_of_zeros_has_an_ordinary_scale_below_one(type_: TensorType) -> None:
    params = asymmetric(Range.of(0.0, 0.0), type_)
    assert 0 < params.scale[0] < 1


def test_scales_stay_normal_numbers_in_products() -> None:
    tiny = asymmetric(Range.of(0.0, 1e-40), TensorType.INT8)
    assert tiny.scale[0] * tiny.scale[0] >= np.finfo(np.float32).tiny


def test_ranges_join() -> None:
    joined = hull([Range.of(-1.0, 2.0), Range.of(0.0, 5.0)])
    assert (joined.low[0], joined.high[0]) == (-1.0, 5.0)


def test_equal_parameters_are_equal_values() -> None:
    assert Params.of(TensorType.INT8, 0.5, 3) == Params.of(TensorType.INT8, 0.5, 3)
    assert Params.of(TensorType.INT8, 0.5, 3) != Params.of(TensorType.UINT8, 0.5, 3)
    assert len({Params.of(TensorType.INT8, 0.5, 3), Params.of(TensorType.INT8, 0.5, 3)}) == 1
