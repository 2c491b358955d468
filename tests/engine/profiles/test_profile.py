"""Deriving profiles from one another, and finding them by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.engine.kernels.kernel import EXACT, Kernel, Node, Prepared, close
from tflq.engine.kernels.table import table
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.multiplier import multiply_single_rounding, quantize_multiplier
from tflq.engine.numerics.stage_roundings import BlockTail, DoubleRounding, HalfUpTwice, SingleRounding
from tflq.engine.numerics.stages import OutputPipeline
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.errors import FileAccessError, UnknownNameError

REF = PROFILES["litert-ref"]


def _nothing(node: Node, arithmetic: Arithmetic) -> Prepared:
    raise NotImplementedError


def _row(op: str, types: str) -> Kernel:
    return Kernel(op, types, _nothing)


def test_a_derived_profile_keeps_what_is_not_given() -> None:
    ours = REF.derive("ours", kernels=table((_row("ADD", "any any -> any"),)), without=("SUB",))
    assert ours.arithmetic is REF.arithmetic
    assert ours.source is REF.source
    assert ours.kernels["ADD"][1:] == REF.kernels["ADD"]
    assert "SUB" not in ours.kernels
    assert "SUB" in REF.kernels


def test_every_profile_is_found_under_its_own_name() -> None:
    for name, profile in PROFILES.items():
        assert profile.name == name
        assert by_name(name) is profile


def test_single_rounding_is_a_variant_of_every_profile() -> None:
    variant = by_name("litert-ref+single-rounding")
    assert variant.name == "litert-ref+single-rounding"
    assert variant is by_name("litert-ref+single-rounding")
    assert variant.kernels == REF.kernels
    stage = variant.arithmetic.requantize(0.3)
    mantissa, shift = quantize_multiplier(0.3)
    values = np.arange(-1000, 1000, dtype=np.int32)
    assert stage(values).tolist() == [multiply_single_rounding(int(v), mantissa, shift) for v in values]
    assert variant.arithmetic.requantize_wide == REF.arithmetic.requantize_wide


@pytest.mark.parametrize("name", ["nothing", "+single-rounding", "nothing+single-rounding", "litert-ref+double"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownNameError, match="litert-ref"):
        by_name(name)


def test_profiles_are_values() -> None:
    assert by_name(REF) is REF
    with pytest.raises(AttributeError):
        REF.name = "other"  # type: ignore[misc]
    swapped = replace(REF.arithmetic, requantize=SingleRounding.of)
    assert isinstance(REF.derive("swapped", arithmetic=swapped), Profile)


def test_exactness_in_words() -> None:
    assert str(EXACT) == "exact"
    assert str(close("order of sums", 3)) == "close, 3 ULP measured"
    assert str(close("order of sums")) == "close, not measured"


def _half_up_twice(x: int, real: float) -> int:
    """Two floors, from the formula."""
    mantissa, shift = quantize_multiplier(real)
    high = ((x << max(shift, 0)) * mantissa + 2**30) >> 31
    e = max(-shift, 0)
    return (high + (1 << (e - 1))) >> e if e else high


@pytest.mark.parametrize("real", [0.25, 0.3, 1.0, 3.7, 2.0**-9])
def test_half_up_twice(real: float) -> None:
    values = np.arange(-3000, 3000, dtype=np.int32)
    assert HalfUpTwice.of(real)(values).tolist() == [_half_up_twice(int(v), real) for v in values]


def test_half_up_twice_differs_from_double_rounding_in_negative_ties_only() -> None:
    values = np.arange(-64, 64, dtype=np.int32)
    up, away = HalfUpTwice.of(0.25)(values), DoubleRounding.of(0.25)(values)
    halved = (values + 1) >> 1  # a quarter is a half, shifted right once
    assert np.array_equal(up != away, (halved < 0) & (halved % 2 == 1))


@pytest.mark.parametrize("channels", [3, 8, 11, 16, 21])
def test_blocks_and_their_tail(channels: int) -> None:
    rng = np.random.default_rng(channels)
    values = rng.integers(-500, 500, (37, channels), np.int32)
    bias = rng.integers(-50, 50, channels, np.int32)
    real = np.where(np.arange(channels) % 2, 0.25, 0.0625)
    stage = BlockTail.of(HalfUpTwice.of, DoubleRounding.of, 8)(real)
    got = OutputPipeline(stage, ZeroPoint(3), Clamp(-128, 127), np.dtype(np.int8))(values, bias)
    whole = channels // 8 * 8
    up, away = HalfUpTwice.of(real)(values + bias), DoubleRounding.of(real)(values + bias)
    expected = np.where(np.arange(channels) < whole, up, away) + 3
    assert got.tolist() == np.clip(expected, -128, 127).tolist()
    assert np.array_equal(stage.real, real)


@pytest.mark.parametrize("name", [Path("missing.yaml"), 3, ["litert-ref"], None])
def test_what_is_no_name_has_a_typed_error(name: Any) -> None:
    with pytest.raises((UnknownNameError, FileAccessError)):
        by_name(name)


def test_a_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("base: litert-ref\n", encoding="utf-8")
    assert by_name(path) is by_name(str(path))
