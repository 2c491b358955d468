"""The steps of an output stage end where the compiled stage does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
    Unscaled,
    WideRounding,
)
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, wrap

CHANNELS = 5
STAGES = {
    "double": DoubleRounding.of,
    "half up twice": HalfUpTwice.of,
    "single": SingleRounding.of,
    "wide": WideRounding.of,
    "float64": FloatRounding.of,
    "float64, wide": FloatRounding.of_wide,
    "float32": FloatRoundingEven.of,
    "exact": ExactHalfUp.of,
    "short": ShortHalfUp.of,
    "blocks": BlockTail.of(HalfUpTwice.of, DoubleRounding.of, 2),
    "unscaled": lambda real: Unscaled.of(np.ones(1)),
}


@pytest.mark.parametrize("name", STAGES)
def test_steps_end_at_the_code(name: str) -> None:
    rng = np.random.default_rng(5)
    for bits in (3, 8, 14, 20, 26, 31):
        stage: Any = STAGES[name](2.0 ** rng.uniform(-12, 3, CHANNELS))
        pipeline = OutputPipeline(stage, ZeroPoint(int(rng.integers(-128, 128))), Clamp(-100, 90), np.dtype(np.int8))
        if name == "unscaled":
            pipeline = Unscaled.pipeline()
        wide = name in ("wide", "float64, wide")
        accumulators = rng.integers(-(2**bits), 2**bits, (4, CHANNELS)).astype(np.int64 if wide else np.int32)
        bias = rng.integers(-(2**20), 2**20, CHANNELS).astype(accumulators.dtype)
        codes = pipeline(accumulators, bias)
        for (row, channel), code in np.ndenumerate(codes):
            steps = pipeline.worked(int(accumulators[row, channel]), int(bias[channel]), channel)
            assert steps[-1].value == code, steps


def test_ties_are_told_apart() -> None:
    """-2.5 as -5 * 0.5 (a mantissa of 1/2 and no shift, half up) and -10 * 0.25 (a shift of one, half away)."""
    assert DoubleRounding.of(0.5).worked(-5, 0)[-1].value == -2
    assert DoubleRounding.of(0.25).worked(-10, 0)[-1].value == -3
    assert HalfUpTwice.of(0.25).worked(-10, 0)[-1].value == -2
    assert FloatRounding.of(0.5).worked(-5, 0)[-1].value == -3
    assert FloatRoundingEven.of(0.5).worked(-5, 0)[-1].value == -2


def test_a_stage_that_is_not_known_is_one_step() -> None:
    class Halved(OutputStage):
        real = np.array([0.5, 0.25])

        def __call__(self, accumulator: Any) -> Any:
            return np.floor(accumulator * self.real).astype(np.int32)

    steps = Halved().worked(9, 1)
    assert [step.value for step in steps] == [2]


def test_wrapping_is_a_step_of_its_own() -> None:
    steps = DoubleRounding.of(0.5).worked(2**31 + 6, 0)
    assert {step.name: step.value for step in steps}["wrapped to 32 bits"] == wrap(2**31 + 6) == -(2**31) + 6
