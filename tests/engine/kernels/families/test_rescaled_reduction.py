"""Rules by which float32 sums become codes."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.kernels.families.reduction import NarrowSum, ReducedAxes, Rescaled, RescalingRule, eval_rescaled
from tflq.engine.numerics.codes import ZeroPoint


def rescaled(rule: RescalingRule, zero_point: int = 0) -> Rescaled:
    reduced = ReducedAxes(None, (1, 2, 1), (1,), over_all=True)
    return Rescaled(rule, reduced, np.float32(1), np.float32(0), ZeroPoint(zero_point), np.dtype(np.int8))


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [(NarrowSum.WRAP, [44, 0]), (NarrowSum.CLIP, [127, -128]), (NarrowSum.CLIP_FLOAT, [127, 127])],
)
def test_numbers_beyond_the_type_are_narrowed(narrow: NarrowSum, expected: list[int]) -> None:
    """1e12 has no int32: x86 converts it to the lowest one."""
    data = rescaled(RescalingRule(divide=False, narrow=narrow))
    assert data.codes(np.array([300, 1e12], np.float32)).tolist() == expected


@pytest.mark.parametrize(("divide", "expected"), [(True, 3), (False, 5)])
def test_means_are_sums_divided_by_their_number(divide: bool, expected: int) -> None:
    data = rescaled(RescalingRule(divide=divide, narrow=NarrowSum.CLIP_FLOAT))
    assert eval_rescaled(data, np.array([2, 3], np.int8), np.array([0])).tolist() == [expected]
