"""A mistake in one constant of a sum is computed with that mistake, whatever the processor computes sums with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.single_op import T, build
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.profiles import by_name


@pytest.mark.parametrize("op", ["ADD", "SUB"])
def test_changed_data_gives_changed_sums(op: str) -> None:
    shape = (1, 8, 8, 4)
    operands = [T("int8", shape, 0.05, 3), T("int8", shape, 0.04, -2)]
    plan = make_plan(
        load(build(op, operands, [T("int8", shape, 0.09, 5)], (f"{op.title()}Options", {}))), by_name("litert-ref")
    )
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2))
    prepared = plan.steps[0].prepared
    assert prepared is not None
    data, right = prepared.data, run(plan, {0: a, 1: b}).values[2]
    np.testing.assert_array_equal(prepared.eval(data, a, b), right)
    np.testing.assert_array_equal(
        prepared.eval(replace(data), a, b), right
    )  # by tables, where the others are in registers
    moved = prepared.eval(replace(data, pipeline=replace(data.pipeline, zero_point=ZeroPoint(9))), a, b)
    np.testing.assert_array_equal(moved, np.clip(right.astype(int) + 4, -128, 127))
    clamped = prepared.eval(replace(data, pipeline=replace(data.pipeline, clamp=Clamp(-10, 20))), a, b)
    np.testing.assert_array_equal(clamped, np.clip(right, -10, 20))
    without = prepared.eval(replace(data, first=np.zeros_like(data.first)), a, b)
    assert not np.array_equal(without, right)
