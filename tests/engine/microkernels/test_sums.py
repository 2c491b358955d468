"""Sums of two operands in registers: equal to their stages on scalars; compiled code equal to its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.engine.microkernels import kernel as forms
from tflq.engine.microkernels.sums import Term, definition, sums_into, sums_of
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding, HalfUpTwice, SingleRounding
from tflq.engine.numerics.stages import OutputPipeline

pytestmark = pytest.mark.skipif(forms.choose(True) is None, reason="no form for this machine")
KINDS = [
    ("uint8", DoubleRounding, 1),
    ("int8", DoubleRounding, -1),
    ("int8", SingleRounding, 1),
    ("uint8", HalfUpTwice, -1),
]


@st.composite
def cases(draw, codes, stage):
    """Two operands, random or at the ends of their range, their terms, and a pipeline."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    info, size = np.iinfo(codes), draw(st.integers(0, 150))
    ends = [info.min, info.max]
    pick = rng.choice if draw(st.booleans()) else lambda ends, size: rng.integers(*ends, size, endpoint=True)
    operands = [pick(ends, size).astype(codes) for _ in range(2)]
    other = draw(st.sampled_from([0.5, 0.25, 2.0**-9, 0.37, 0.012]))
    zero_points = [draw(st.sampled_from([int(info.min), 0, 3, int(info.max)])) for _ in range(2)]
    reals = [0.5, other] if draw(st.booleans()) else [other, 0.5]
    terms = [Term(np.dtype(codes), z, 20, stage.of(real)) for z, real in zip(zero_points, reals, strict=True)]
    output = stage.of(2.0**-20 * draw(st.sampled_from([1.0, 0.5, 1.7, 0.04, 2.0**-4])))
    limits = Clamp(int(info.min), int(info.max) - draw(st.sampled_from([0, 90])))
    return operands, terms, OutputPipeline(output, ZeroPoint(3), limits, np.dtype(codes))


def exact(operands, terms, sign, pipeline):
    first, second = (
        term.stage(((x.astype(np.int64) - term.zero_point) << term.left).astype(np.int32)).astype(np.int64)
        for x, term in zip(operands, terms, strict=True)
    )
    return pipeline((first + sign * second).astype(np.int32)[:, None], np.zeros(1, np.int32))[:, 0]


def made(case, sign, by=None):
    """The sums of a case: those of the kernel, or those that `by`, a function of a kernel, computes."""
    operands, terms, pipeline = case
    sums = sums_of(*terms, sign, pipeline)
    assert sums is not None
    out = np.full(operands[0].size, 99, pipeline.dtype)
    if by is None:
        sums.into(*operands, out)()
    else:
        constants = sums.constants, int(sums.zero_point), *sums.clamp
        by(sums.kernel)(*operands, sums.address, sums.kernel.lanes, *constants, out)
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("codes", "stage", "sign"), KINDS)
def test_sums_are_exact(codes, stage, sign):
    @settings(max_examples=80)
    @given(cases(codes, stage))
    def check(case):
        np.testing.assert_array_equal(made(case, sign), exact(*case[:2], sign, case[2]))

    check()


def test_the_definition_is_what_compiled_code_does():
    def defined(kernel):
        return sums_into.bind(sum_into=lambda at, *rest: definition(kernel)(*rest)).python

    @settings(max_examples=15)
    @given(cases("uint8", DoubleRounding))
    def check(case):
        np.testing.assert_array_equal(made(case, 1, defined), exact(*case[:2], 1, case[2]))

    check()


def test_what_could_wrap_is_left_to_tables():
    """Centred codes of 16 bits, shifted to the left by 15, reach 2**30."""
    stage = DoubleRounding.of(0.5)
    pipeline = OutputPipeline(stage, ZeroPoint(0), Clamp(-(2**15), 2**15 - 1), np.dtype(np.int16))
    wide, narrow = (Term(np.dtype(np.int16), 0, left, stage) for left in (15, 14))
    assert sums_of(wide, narrow, 1, pipeline) is None
    assert sums_of(narrow, narrow, 1, pipeline) is not None
