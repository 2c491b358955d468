"""Breakpoints of output stages, held against every accumulator looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.engine.kernels.families.contraction import Output
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import (
    BlockTail,
    DoubleRounding,
    ExactHalfUp,
    FloatRounding,
    FloatRoundingEven,
    HalfUpTwice,
    ShortHalfUp,
    SingleRounding,
    WideRounding,
)
from tflq.engine.numerics.stages import OutputPipeline, repeat
from tflq.proof.products import breakpoints, codes_of, compared, never_falls

STAGES = {
    "double": (DoubleRounding.of, np.int32),
    "half up twice": (HalfUpTwice.of, np.int32),
    "single": (SingleRounding.of, np.int32),
    "wide": (WideRounding.of, np.int64),
    "float": (FloatRounding.of, np.int32),
    "float32": (FloatRoundingEven.of, np.int32),
    "exact": (ExactHalfUp.of, np.int32),
    "short": (ShortHalfUp.of, np.int32),
    "blocks": (BlockTail.of(HalfUpTwice.of, DoubleRounding.of, 2), np.int32),
}
LOW, HIGH = np.array([-9000, -500, 0], np.int64), np.array([9000, 700, 4000], np.int64)
REAL = np.array([0.013, 0.5, 2.0**-6])


def output(name: str, real: np.ndarray = REAL, bias: tuple[int, ...] = (100, -3, 0), zero_point: int = -5) -> Output:
    make, accumulator = STAGES[name]
    clamp = Clamp(-100, 127)
    pipeline = OutputPipeline(make(real), ZeroPoint(zero_point), clamp, np.dtype(np.int8))
    return Output(repeat(np.array(bias, accumulator)), pipeline)


def everything(made: Output, channel: int) -> tuple[np.ndarray, np.ndarray]:
    """All accumulators of a channel and their codes."""
    sums = np.arange(LOW[channel], HIGH[channel] + 1)
    return sums, codes_of(made, np.repeat(sums[:, None], len(LOW), 1))[:, channel].astype(int)


@pytest.mark.parametrize("name", STAGES)
def test_breakpoints_are_where_codes_rise(name: str) -> None:
    made = output(name)
    assert never_falls(made, LOW, HIGH)
    found = breakpoints(made, LOW, HIGH)
    assert found is not None
    for guess in (found, found + 1, found - 40, np.zeros_like(found)):  # a guess changes the time only
        assert np.array_equal(breakpoints(made, LOW, HIGH, near=np.clip(guess, LOW, HIGH + 1)), found)
    assert found is not None
    for channel in range(len(LOW)):
        sums, codes = everything(made, channel)
        assert (np.diff(codes) >= 0).all()
        for row, code in enumerate(range(-99, 128)):
            reached = np.flatnonzero(codes >= code)
            want = sums[reached[0]] if reached.size else HIGH[channel] + 1
            assert found[row, channel] == want, (name, channel, code)


@pytest.mark.parametrize("name", ["double", "half up twice", "single", "float", "wide"])
def test_a_stage_that_can_wrap_is_not_called_monotone(name: str) -> None:
    steep = output(name, real=np.full(3, 2.0**22))
    assert not never_falls(steep, LOW, HIGH)


def test_an_accumulator_that_can_wrap_is_not_called_monotone() -> None:
    made = output("double", bias=(2**31 - 10, 0, 0))
    assert not never_falls(made, LOW, HIGH)


def test_single_sums_that_differ_are_found() -> None:
    """A tie below zero: half away and half up part there, and there only."""
    one, other = (output(name, real=np.full(3, 2.0**-4), bias=(0, 0, 0)) for name in ("double", "half up twice"))
    apart = compared(one, other, LOW, HIGH)
    assert apart
    for runs in apart.values():
        sums = np.concatenate([np.arange(start, stop) for start, stop in runs])
        assert ((sums + 1 >> 1) % 8 == 4).all()  # of the second rounding
        assert (sums < 0).all()
    first, second = (breakpoints(made, LOW, HIGH) for made in (one, other))
    assert first is not None
    assert second is not None
    sums, codes = everything(one, 0)
    _, others = everything(other, 0)
    ends = np.sort([first[:, 0], second[:, 0]], axis=0).T
    assert {int(s) for low, high in ends for s in range(low, high)} == {*map(int, sums[codes != others])}


def test_a_multiplier_that_was_rounded_up_can_wrap() -> None:
    """The real multiplier keeps the largest sum inside int32, its 15 bits do not."""
    real = (0.75 + 2.0**-16) * 2.0**-9  # half of the last of 15 bits
    high = int((2.0**31 - 8) / real)
    clamp, dtype = Clamp(-(2**15), 2**15 - 1), np.dtype(np.int16)
    stage = WideRounding.of(np.array([real]))
    made = Output(repeat(np.zeros(1, np.int64)), OutputPipeline(stage, ZeroPoint(0), clamp, dtype))
    low, ends = np.zeros(1, np.int64), np.array([[high // 2], [high]], np.int64)
    below, top = codes_of(made, ends)[:, 0]
    assert top < below
    assert not never_falls(made, low, ends[1])


@pytest.mark.parametrize("name", ["double", "float32", "blocks"])
def test_outputs_of_other_clamps_are_compared_on_every_sum(name: str) -> None:
    wide = output(name)
    narrow = replace(wide, pipeline=replace(wide.pipeline, clamp=Clamp(-20, 50)))
    found = [breakpoints(made, LOW, HIGH, (-100, 127)) for made in (wide, narrow)]
    assert found[0] is not None
    assert found[1] is not None
    looked_at = compared(wide, narrow, LOW, HIGH)
    assert looked_at is not None
    for channel in range(len(LOW)):
        sums, codes = everything(wide, channel)
        apart = {*map(int, sums[codes != everything(narrow, channel)[1]])}
        ends = np.sort([found[0][:, channel], found[1][:, channel]], axis=0).T
        assert {int(s) for low, high in ends for s in range(low, high)} == apart
        runs = looked_at.get(channel, np.empty((0, 2), np.int64))
        assert {int(s) for low, high in runs for s in range(low, high)} == apart
