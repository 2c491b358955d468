"""Points of the grammar of requantizers, compared with the stages of runtimes and against scalar code."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.planted import Device, Fields, drawn, stated
from tflq.engine.numerics.multiplier import OperatorScales
from tflq.engine.numerics.requantizer import (
    FIELDS,
    NAMED,
    GrammarStage,
    Requantizer,
    canonical,
    differing,
    point_of,
    points,
    variants,
)
from tflq.engine.numerics.requantizer import stated as written
from tflq.engine.profiles.building import VALUES
from tflq.errors import OptionError, UnknownNameError


@pytest.mark.parametrize("name", NAMED)
def test_named_points_are_the_stages_of_runtimes(name: str) -> None:
    rng = np.random.default_rng(1)
    for turn in range(12):
        real = 2.0 ** rng.uniform(-16, 3, 8)
        totals = rng.integers(-(2**31), 2**31, (100, 8)) if turn % 3 == 0 else np.rint(rng.uniform(-300, 300) / real)
        accumulator = np.broadcast_to(totals, (100, 8)).clip(-(2**31), 2**31 - 1)
        accumulator = np.ascontiguousarray(accumulator, np.int64 if "wide" in name else np.int32)
        expected, got = np.empty((100, 8), np.int8), np.empty((100, 8), np.int8)
        bias = rng.integers(-100, 100, 8).astype(np.int32)
        VALUES["requantize"][name](real).narrow(accumulator, expected, bias, 3, -128, 127)
        GrammarStage.of(NAMED[name], real).narrow(accumulator, got, bias, 3, -128, 127)
        assert got.tolist() == expected.tolist()


@each("seed", range(1, 60, 4))
def test_points_compute_as_scalar_code(seed: int) -> None:
    fields, _ = drawn(seed)
    device, point = Device(fields), point_of(stated(fields))
    rng = np.random.default_rng(seed)
    a, b, y = ((2.0 ** rng.uniform(-8, -2, 60)).astype(np.float32) for _ in range(3))
    scales = OperatorScales(a, b, y)
    totals = np.rint(rng.uniform(-300, 300, 60) / scales.real).astype(np.int64)
    totals[:20] = rng.integers(-(2**31), 2**31, 20)
    got = point.codes(totals, point.factors(scales.real, scales), 7, -128, 127)
    assert got.tolist() == [device.code(int(t), *s, 7, 0) for t, *s in zip(totals, a, b, y, strict=True)]


def test_points_are_different_and_canonical() -> None:
    every = points()
    assert len(set(every)) == len(every) > 3000
    assert all(canonical(point) == point for point in every)
    assert all(point_of(written(point)) == point for point in every[::97])
    assert {point.left for point in variants(every[0])} == set(FIELDS["left"])


def test_canonical_points_are_the_same_function() -> None:
    rng = np.random.default_rng(5)
    a, b, y = ((2.0 ** rng.uniform(-8, -4, 4000)).astype(np.float32) for _ in range(3))
    scales = OperatorScales(a, b, y)
    totals = np.rint((rng.integers(-120, 120, 4000) + 0.5) / scales.real).astype(np.int64)
    for point in (
        Requantizer("float32", mantissa=24, shortened="cut off", first="half up"),
        Requantizer("float64", first="towards zero", last="towards zero"),
        Requantizer("float64", mantissa=8, first="towards minus infinity", last="towards minus infinity"),
    ):
        other = canonical(point)
        assert other != point
        codes = [p.codes(totals, p.factors(scales.real, scales), 0, -128, 127) for p in (point, other)]
        assert np.array_equal(*codes)
        assert differing((point, other))


def test_strange_fields_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="field of a requantizer"):
        point_of({"mantisse": 31})
    with pytest.raises(UnknownNameError, match="value of mantissa"):
        point_of({"mantissa": True})
    with pytest.raises(OptionError, match="only a product in fixed point"):
        point_of({"product": "float64", "mantissa": 15})
    assert Fields() == Fields()
