"""Half-way cases of every operator that requantizes: a few that releases were seen to give, and all of them live.

TFLQ_RELEASES names a folder of virtual environments named PACKAGE-VERSION, such as tflite-runtime-2.7.0; profiles whose
environment is not there are skipped by name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opfuzz.ties
import tflq
from opfuzz.case import Array, Case
from opfuzz.compare import difference_of
from opfuzz.one_operator import T
from opfuzz.releases import Release, releases
from opfuzz.remote import Ran, Remote
from opfuzz.remote_worker import invoke
from opfuzz.ties import ties
from support.each import each
from support.live import hold
from tflq.errors import TflqError

RELEASES = {release.profile: release for release in releases(Path(os.environ.get("TFLQ_RELEASES", "no-releases")))}


def leaky_relu(kind: str, code: int, ratio: float, alpha: float) -> Case:
    """One code, zero points 0."""
    x, y = T(kind, (1,), ratio * 2.0**-5), T(kind, (1,), 2.0**-5)
    return Case("LEAKY_RELU", (x,), (y,), ((np.array([code], kind),),), ("LeakyReluOptions", {"alpha": alpha}))


def mul(size: int) -> Case:
    """54 and 112 of zero point -128, `size` times: 182 * 240 * 0.75 = 32760, and a zero point of 127."""
    operands = T("int8", (size,), 2.0**-6, -128), T("int8", (size,), 1.5, -128)
    sample = np.full(size, 54, np.int8), np.full(size, 112, np.int8)
    return Case("MUL", operands, (T("int8", (size,), 2.0**-5, 127),), (sample,), ("MulOptions", {}), 2)


def equal() -> Case:
    """The same code under two scales."""
    operands = T("int16", (1,), 2.0**-5), T("int16", (1,), 2.0**-6)
    code = np.array([-32761], np.int16)
    return Case("EQUAL", operands, (T("bool", (1,)),), ((code, code),), ("EqualOptions", {}))


def total() -> Case:
    """Two codes whose sum leaves 16 bits."""
    axis = T("int32", (1,), value=[0])
    x, y = T("int16", (2, 1), 2.0**-5), T("int16", (1,), 2.0**-5)
    sample = (np.array([[-32767], [-32768]], np.int16),)
    return Case("SUM", (x, axis), (y,), (sample,), ("ReducerOptions", {"keep_dims": False}), 2)


def scaled_up(kind: str, shift: int) -> Case:
    """A MUL, MEAN or FULLY_CONNECTED whose multiplier is 2**shift, of codes that are all 1."""
    scale, one = 2.0**shift, np.ones((1, 1, 1, 16), np.int8)
    x, y = T("int8", one.shape, scale), T("int8", one.shape, 1.0)
    if kind == "MUL":
        return Case(kind, (x, T("int8", one.shape, 1.0)), (y,), ((one, one),), ("MulOptions", {}), 2)
    if kind == "MEAN":
        axes = T("int32", (2,), value=[1, 2])
        x = T("int8", one.shape, scale, -128)
        return Case(
            kind, (x, axes), (T("int8", one.shape, 1.0, 127),), ((one,),), ("ReducerOptions", {"keep_dims": True}), 2
        )
    weights = T("int8", (16, 1), 1.0, value=np.ones((16, 1)))
    options = ("FullyConnectedOptions", {"fused_activation_function": 0})
    x, y = T("int8", (1, 1), scale), T("int8", (1, 16), 1.0)
    return Case(kind, (x, weights, None), (y,), ((np.ones((1, 1), np.int8),),), options, 5)


#: Profile, case, and what its runtime was seen to give for every element.
SEEN = (
    *((name, leaky_relu("int16", -32754, 0.125, -1.5), 6142) for name in ("tflite-2.14-ref", "litert-2.0-ref")),
    ("litert-ref", leaky_relu("int16", -32754, 0.125, -1.5), 6141),
    ("litert-opt", leaky_relu("int16", -32765, 0.5, -0.5), 8192),
    *((name, mul(16), -128) for name in ("litert-opt", "tflite-2.12-opt")),
    *((name, mul(16), 127) for name in ("litert-ref", "tflite-2.14-opt")),
    ("litert-opt", mul(15), 127),
    *((name, scaled_up("MUL", 40), 0) for name in ("litert-opt", "litert-xnnpack")),
    ("litert-ref", scaled_up("MUL", 38), 64),
    ("litert-opt", scaled_up("MEAN", 30), 127),
    ("litert-opt", scaled_up("FULLY_CONNECTED", 31), 0),
    ("litert-opt", scaled_up("FULLY_CONNECTED", 6), 64),
    ("litert-xnnpack", scaled_up("FULLY_CONNECTED", 6), 64),
    *((name, equal(), 1) for name in ("tflite-2.14-ref", "litert-2.0-opt")),
    ("litert-opt", equal(), 0),
    *((name, total(), 1) for name in ("tflite-2.7-opt", "tflite-2.13-ref", "tflite-2.14-opt", "litert-1.0-xnnpack")),
)


@each(("profile", "case", "expected"), SEEN, ids=[f"{c.op}-{p}" for p, c, _ in SEEN])
def test_outputs_that_releases_were_seen_to_give(profile: str, case: Case, expected: int) -> None:
    (outputs,) = outputs_of(case, profile)
    assert set(outputs[0].astype(int).reshape(-1).tolist()) == {expected}


@pytest.mark.parametrize("profile", ["tflite-2.7-opt", "tflite-2.12-ref", "tflite-2.13-opt", "tflite-2.14-opt"])
def test_sums_of_16_bits_are_not_rescaled_up_to_2_14(profile: str) -> None:
    x, axis = total().inputs
    rescaled = Case("SUM", (x, axis), (T("int16", (1,), 2.0**-4),), total().samples, total().options, 2)
    with pytest.raises(TflqError, match="not rescaled"):
        outputs_of(rescaled, profile)


@pytest.mark.parametrize("op", ["NOT_EQUAL", "GREATER", "LESS_EQUAL"])
@pytest.mark.parametrize(
    ("profile", "takes"), [("litert-1.0-ref", False), ("litert-2.0-opt", False), ("litert-ref", True)]
)
def test_comparisons_of_16_bits_came_with_litert_2_1(op: str, profile: str, takes: bool) -> None:
    operand, name = T("int16", (1,), 2.0**-5), "".join(word.title() for word in op.split("_"))
    code = np.array([3], np.int16)
    case = Case(op, (operand, operand), (T("bool", (1,)),), ((code, code),), (f"{name}Options", {}))
    if takes:
        assert outputs_of(case, profile)[0][0].tolist() == [op == "LESS_EQUAL"]
    else:
        with pytest.raises(TflqError, match=op):
            outputs_of(case, profile)


def outputs_of(case: Case, profile: str) -> list[list[Array]]:
    """The profile's outputs of every sample."""
    interpreter = tflq.Interpreter(model_content=case.model(), profile=profile)
    interpreter.allocate_tensors()
    return [invoke(interpreter, sample) for sample in case.samples]


@pytest.mark.parametrize("kind", ["FULLY_CONNECTED"])
def test_xnnpack_creates_no_operator_for_multipliers_from_256_on(kind: str) -> None:
    with pytest.raises(TflqError, match="below 256"):
        outputs_of(scaled_up(kind, 8), "litert-xnnpack")


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
def test_half_way_cases_on_the_release(release: Release) -> None:
    assert compared_with(release) > 1500


#: Multipliers around the limits of XNNPACK, of an int32 and of a shift.
WIDE = tuple(m * 2.0**k for k in (7, 8, 24, 30, 31, 32, 33, 63, 64, 102) for m in (1.0, 1.25))


@pytest.mark.slow
@pytest.mark.parametrize(
    "release", [r for r in RELEASES.values() if str(r.python) == sys.executable], ids=lambda release: release.profile
)
def test_wide_multipliers_on_the_release(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opfuzz.ties, "RATIOS", WIDE)
    assert compared_with(release) > 3000


def compared_with(release: Release) -> int:
    """How many cases both ran, with equal outputs: a profile may refuse what the release leaves undefined."""
    runtime, compared = running(release), 0
    for case in ties():
        expected = runtime.run(case)
        if isinstance(expected, Ran):
            compared += assert_equal(case, release.profile, expected.outputs)
    runtime.close()
    return compared


def assert_equal(case: Case, profile: str, expected: Any) -> bool:
    """Whether the profile takes the case, whose outputs must then be the expected ones."""
    try:
        actual = outputs_of(case, profile)
    except TflqError:
        return False
    differences = [difference_of(*pair) for s in zip(actual, expected, strict=True) for pair in zip(*s, strict=True)]
    assert not any(differences), (str(case), differences)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
def test_random_operators_on_the_release(release: Release) -> None:
    runtime = running(release)
    tally = hold(release.profile, runtime, 5, 300, ("exact",))
    runtime.close()
    assert not tally.differing, tally.differing[0]
    assert tally.same > 100


def running(release: Release) -> Remote:
    """The runtime of a release, or a skip that names its environment."""
    if not release.python.exists():
        pytest.skip(f"TFLQ_RELEASES has no {release.python.parent.parent.name}")
    return Remote([str(release.python)], release.module, release.resolver)
