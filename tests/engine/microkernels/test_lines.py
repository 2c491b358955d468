"""Sums over taps along lines: equal to exact integers, scaled by their stage; compiled code equal to its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.engine.microkernels import kernel as forms
from tflq.engine.microkernels.taps import SLACK, definition, lines_into, tap_sums
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding, HalfUpTwice, SingleRounding, WideRounding
from tflq.engine.numerics.stages import OutputPipeline

FORM = forms.choose(True)
pytestmark = pytest.mark.skipif(FORM is None or FORM.group != 2, reason="no form of int16 pairs for this machine")
KINDS = [
    ("uint8", (-255, 255), DoubleRounding, "uint8"),
    ("int8", (-128, 127), DoubleRounding, "int8"),
    ("int8", (-128, 127), SingleRounding, "int8"),
    ("uint8", (-255, 255), HalfUpTwice, "uint8"),
    ("int16", (-128, 127), WideRounding, "int16"),
]


@st.composite
def cases(draw, codes, weight_range):
    """Codes of a slab, their zero point, weights (T, C), offsets and a bias: random, or at the ends of their ranges."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    taps, channels, pixels = draw(st.integers(1, 12)), draw(st.integers(1, 40)), draw(st.integers(1, 6))
    info, is_extreme = np.iinfo(codes), draw(st.booleans())
    pick = rng.choice if is_extreme else lambda ends, size: rng.integers(*ends, size, endpoint=True)
    offsets = rng.integers(0, 200, taps)
    rows, step = draw(st.integers(1, 3)), draw(st.integers(0, 50))
    slab = pick([info.min, info.max], 200 + rows * step + pixels * channels + SLACK).astype(codes)
    zero_point = 0 if info.bits == 16 else draw(st.sampled_from([int(info.min), 0, 3, int(info.max)]))
    weights = pick(list(weight_range), (taps, channels)).astype(np.int16)
    return slab, zero_point, weights, offsets, rng.integers(-(2**15), 2**15, channels), (rows, step, pixels)


def pipeline_of(stage, code, channels):
    reals = np.exp2(np.arange(channels) % 9 - 12.0) * (1 + np.arange(channels) % 3 / 7)
    info = np.iinfo(code)
    return OutputPipeline(stage.of(reals), ZeroPoint(3), Clamp(int(info.min), int(info.max) - 1), np.dtype(code))


def made(case, pipeline, by=lambda kernel: lines_into):
    slab, zero_point, weights, offsets, bias, (rows, step, pixels) = case
    bound = tap_sums(slab.dtype, zero_point, weights, offsets, bias.astype(np.int32), pipeline)
    assert bound is not None
    length = pixels * weights.shape[1]
    out = np.full(5 + rows * length + 5, 99, pipeline.dtype)
    packed = bound.offsets, bound.weights, bound.constants
    by(bound.kernel)(bound.line, slab, step, *packed, *bound.limits, out, 5, rows, length)
    assert (out[:5] == 99).all()
    assert (out[-5:] == 99).all()
    return out[5:-5].reshape(rows, pixels, -1)


def exact(case, pipeline):
    slab, zero_point, weights, offsets, bias, (rows, step, pixels) = case
    length = pixels * weights.shape[1]
    starts = np.arange(rows)[:, None, None] * step + offsets[:, None] + np.arange(length)
    seen = (slab[starts].astype(np.int64) - zero_point).reshape(rows, len(offsets), pixels, -1)
    return pipeline((seen * weights[:, None, :].astype(np.int64)).sum(axis=1), bias)


@pytest.mark.slow
@pytest.mark.parametrize(("codes", "weight_range", "stage", "code"), KINDS)
def test_lines_are_exact(codes, weight_range, stage, code):
    @settings(max_examples=60)
    @given(cases(codes, weight_range))
    def check(case):
        pipeline = pipeline_of(stage, code, case[2].shape[1])
        np.testing.assert_array_equal(made(case, pipeline), exact(case, pipeline))

    check()


def test_the_definition_is_what_compiled_code_does():
    def defined(kernel):
        return lines_into.bind(line_into=lambda at, *rest: definition(kernel)(*rest)).python

    @settings(max_examples=15)
    @given(cases("int8", (-128, 127)))
    def check(case):
        pipeline = pipeline_of(DoubleRounding, "int8", case[2].shape[1])
        np.testing.assert_array_equal(made(case, pipeline, defined), exact(case, pipeline))

    check()


def test_what_could_wrap_or_fits_no_register_is_left_to_plain_loops():
    pipeline, offsets = pipeline_of(DoubleRounding, "int8", 1), np.arange(3)
    weights, bias = np.full((3, 1), 127, np.int16), np.zeros(1, np.int32)
    assert tap_sums(np.dtype(np.int8), 0, weights, offsets, bias, pipeline) is not None
    assert tap_sums(np.dtype(np.int8), 0, weights, offsets, bias + 2**30, pipeline) is None
    assert tap_sums(np.dtype(np.int8), 0, weights.astype(np.int32) << 9, offsets, bias, pipeline) is None
