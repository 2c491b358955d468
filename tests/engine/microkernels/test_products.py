"""Products of rows of codes with constant matrices: equal to exact integers, scaled by their stage."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.engine.microkernels import kernel
from tflq.engine.microkernels.product import CodeOperand, fuse, pack_rows, summed
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding, FloatRounding, ShortHalfUp
from tflq.engine.numerics.stages import OutputPipeline

FORM = kernel.choose(False)
pytestmark = pytest.mark.skipif(FORM is None, reason="no form for this machine")


@st.composite
def cases(draw, codes, weight_range, deepest):
    """Weights, codes, their zero point and a bias, random or at the ends of their ranges; all sizes are small."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, length, width = draw(st.integers(0, 20)), draw(st.integers(1, deepest)), draw(st.integers(1, 70))
    info = np.iinfo(codes)
    is_extreme = draw(st.booleans())
    pick = rng.choice if is_extreme else lambda ends, size: rng.integers(*ends, size, endpoint=True)
    weights = pick(list(weight_range), (length, width)).astype(np.int16)
    x = pick([info.min, info.max], (rows, length)).astype(codes)
    zero_point = 0 if info.bits == 16 else draw(st.sampled_from([int(info.min), 0, 3, int(info.max)]))
    return weights, x, zero_point, rng.integers(-(2**15), 2**15, width).astype(np.int32)


def made(weights, x, zero_point, bias, pipeline, form=None):
    bound = fuse(CodeOperand(x.dtype, zero_point, pack_rows), [weights], len(x), bias, pipeline, form)
    out = np.full((len(x), weights.shape[1]), 99, pipeline.dtype)
    for product in bound:
        product(out, 0, x, 0)
    return bound, out


def exact_sums(weights, x, zero_point):
    return (x.astype(np.int64) - zero_point) @ weights.astype(np.int64)


FUSED = [
    ("uint8", (-255, 0), DoubleRounding, "uint8"),
    ("uint8", (-255, 255), DoubleRounding, "uint8"),
    ("int8", (-128, 127), DoubleRounding, "int8"),
    ("int16", (-128, 127), FloatRounding, "int16"),
]


def spanning(weights, weight_range):
    """The weights with both ends of their range among them where there is room: the range decides the form."""
    flat = weights.reshape(-1)
    if flat.size > 1:
        flat[0], flat[-1] = weight_range
    return weights


@pytest.mark.parametrize(("codes", "weight_range", "stage", "code"), FUSED)
def test_fused(codes, weight_range, stage, code):
    info = np.iinfo(code)

    @given(cases(codes, weight_range, 60))
    def check(case):
        weights, x, zero_point, bias = case
        weights = spanning(weights, weight_range)
        reals = np.exp2(np.arange(weights.shape[1]) % 12 - 14.0) * (1 + np.arange(weights.shape[1]) % 3 / 7)
        pipeline = OutputPipeline(stage.of(reals), ZeroPoint(3), Clamp(int(info.min), int(info.max)), np.dtype(code))
        bound, got = made(weights, x, zero_point, bias, pipeline)
        assert len(bound) == 1
        np.testing.assert_array_equal(got, pipeline(exact_sums(weights, x, zero_point), bias))

    check()


def byte_forms():
    """Forms of bytes with plain vector code in place of their instruction: offsets and row terms are theirs."""
    plain = {"uint8": "plain-uint8", "int8": "plain-int8"}
    found = [form for form in kernel.FORMS if form.left in plain]
    return [replace(form, name=f"{form.name} in plain code", dot=plain[form.left]) for form in found]


@pytest.mark.slow
@pytest.mark.parametrize("form", byte_forms(), ids=lambda form: form.name)
@pytest.mark.parametrize(("codes", "weight_range"), [("uint8", (-200, 55)), ("int8", (-128, 127))])
def test_offsets_of_bytes(form, codes, weight_range):
    pipeline = OutputPipeline(DoubleRounding.of(2.0**-9), ZeroPoint(-5), Clamp(-128, 127), np.dtype(np.int8))

    @settings(max_examples=40)
    @given(cases(codes, weight_range, 30))
    def check(case):
        weights, x, zero_point, bias = case
        bound, got = made(weights, x, zero_point, bias, pipeline, form)
        assert [product.kernel.tile.form for product in bound] == [form]
        np.testing.assert_array_equal(got, pipeline(exact_sums(weights, x, zero_point), bias))

    check()


def test_sums_wrap_as_int32():
    """32,768 products of 255 * 255 and more are beyond int32."""
    weights, x = np.full((40000, 3), -255, np.int16), np.full((2, 40000), 255, np.uint8)
    (product,) = summed(CodeOperand(x.dtype, 0, pack_rows), [weights], len(x), np.dtype(np.int32))
    out = np.zeros((2, 3), np.int32)
    product(out, 0, x, 0)
    want = exact_sums(weights, x, 0)
    assert (np.abs(want) > 2**31).all()
    np.testing.assert_array_equal(out, want.astype(np.int32))
    assert summed(CodeOperand(x.dtype, 0, pack_rows), [weights], len(x), np.dtype(np.int64)) == ()


def test_groups_lie_side_by_side_and_rows_may_begin_anywhere():
    rng = np.random.default_rng(5)
    matrices = [rng.integers(-128, 128, (7, 5)).astype(np.int16) for _ in range(3)]
    x = rng.integers(0, 256, (30, 7)).astype(np.uint8)
    out = np.zeros((10, 15), np.int32)
    for product in summed(CodeOperand(x.dtype, 9, pack_rows), matrices, 10, np.dtype(np.int32)):
        product(out, 12, x, 0)
    np.testing.assert_array_equal(out, exact_sums(np.concatenate(matrices, axis=1), x[12:22], 9))


@pytest.mark.parametrize(
    ("weights", "pipeline"),
    [
        (
            np.full((20000, 1), 255, np.int16),
            OutputPipeline(DoubleRounding.of(0.001), ZeroPoint(0), Clamp(0, 255), np.dtype(np.uint8)),
        ),
        (
            np.ones((1, 1), np.int16),
            OutputPipeline(DoubleRounding.of(2.0**24), ZeroPoint(0), Clamp(0, 255), np.dtype(np.uint8)),
        ),
        (
            np.ones((1, 1), np.int16),
            OutputPipeline(FloatRounding.of(np.inf), ZeroPoint(0), Clamp(0, 255), np.dtype(np.uint8)),
        ),
        (
            np.ones((1, 1), np.int16),
            OutputPipeline(ShortHalfUp.of(2.0**24), ZeroPoint(0), Clamp(0, 255), np.dtype(np.uint8)),
        ),
    ],
)
def test_what_could_wrap_is_not_fused(weights, pipeline):
    x = np.zeros((4, len(weights)), np.uint8)
    assert made(weights, x, 0, np.zeros(1, np.int32), pipeline)[0] == ()


def test_forms_of_a_processor():
    def names(machine, features, is_wide):
        return [form.name for form in kernel.ranked(machine, features.split(), is_wide)]

    x86 = "sse2 ssse3 avx2 avx512bw avx512vnni avxvnni"
    wide = ["avx512-vnni-pairs", "avx-vnni-pairs", "avx512-bw", "avx2", "sse2"]
    assert names("x86_64", x86, False) == ["avx512-vnni", "avx-vnni", *wide]
    assert names("x86_64", x86, True) == wide
    assert names("x86_64", "sse2 avx2 avxvnni", False) == ["avx-vnni", "avx-vnni-pairs", "avx2", "sse2"]
    assert names("x86_64", "sse2", False) == ["sse2"]
    assert names("aarch64", "neon dotprod", False) == ["neon-dotprod", "neon"]
    assert names("aarch64", "neon dotprod", True) == ["neon"]
    assert names("riscv64", x86, False) == []


@pytest.mark.parametrize(("weight_range", "is_wide"), [((-255, 0), False), ((-128, 127), False), ((-255, 255), True)])
def test_weights_beyond_8_bits_take_the_best_wide_form(weight_range, is_wide):
    weights = np.array([weight_range, weight_range], np.int16)
    pipeline = OutputPipeline(DoubleRounding.of(2.0**-9), ZeroPoint(0), Clamp(-128, 127), np.dtype(np.int8))
    bound, _ = made(weights, np.zeros((3, 2), np.uint8), 7, np.zeros(2, np.int32), pipeline)
    assert [product.kernel.tile.form for product in bound] == [kernel.choose(is_wide)]


SCRIPT = """
import hashlib, numpy as np
from tflq.engine.microkernels.product import CodeOperand, fuse, pack_rows
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stage_roundings import DoubleRounding
from tflq.engine.numerics.stages import OutputPipeline
rng = np.random.default_rng(3)
x, w = rng.integers(0, 256, (50, 37)).astype(np.uint8), rng.integers(-127, 128, (37, 41)).astype(np.int16)
reals = np.exp2(-np.arange(41) / 5 - 6)
stage = OutputPipeline(DoubleRounding.of(reals), ZeroPoint(3), Clamp(0, 255), np.dtype(np.uint8))
out = np.zeros((50, 41), np.uint8)
for product in fuse(CodeOperand(x.dtype, 7, pack_rows), [w], 50, np.arange(41, dtype=np.int32), stage):
    product(out, 0, x, 0)
print(product.kernel.tile.form.name, hashlib.sha256(out.tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(kernel.machine() != "x86_64", reason="switches features of x86-64 off")
def test_features_that_numba_is_told_decide():
    """An older processor takes another form and gets the same codes."""
    older = {**os.environ, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2,+cx16"}
    answers = []
    for environment in (os.environ, older):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        answers.append(run.stdout.split())
    assert [name for name, _ in answers] == [FORM.name, "sse2"]
    assert answers[0][1] == answers[1][1]
