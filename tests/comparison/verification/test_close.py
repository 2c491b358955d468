"""Results that a profile promises to be close only: said to be so, with what was measured, and never called the same.

The profile here is `litert-ref` with a SOFTMAX that promises no more than four ULP.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

import tflq
from support import commands, suites
from tflq.comparison.goldens.golden import Golden
from tflq.comparison.inspection.difference import difference
from tflq.comparison.results import Status, Verdict, within
from tflq.comparison.verification.verifying import record, verify
from tflq.engine.kernels.kernel import EXACT, SAME_LIBM, Exactness, close
from tflq.engine.profiles import by_name
from tflq.errors import StateError
from tflq.model.ir import view

CAUTIOUS = by_name("litert-ref").derive(
    "cautious",
    kernels={
        "SOFTMAX": tuple(replace(row, exactness=close("a test", 4)) for row in by_name("litert-ref").kernels["SOFTMAX"])
    },
)
MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_float.tflite"


def test_differences_are_measured_at_the_scale_of_their_tensor() -> None:
    expected = np.array([1024, 2**-24, -3], np.float32)
    got = expected + np.array([0, 2**-12, 0], np.float32)
    found = difference(expected, got)
    assert found.largest > 10**6  # of the small element's own
    assert found.at_scale == 2  # 2**-13 is the last place of 1024
    for other in (np.nan, np.inf):
        assert difference(expected, np.array([1024, 0, other], np.float32)).at_scale is None
    assert difference(np.int8([1]), np.int8([2])).at_scale is None


@pytest.mark.parametrize("peak", [1.0, 1.5, 2.0**-126, 3.4e38, 1e-45])
def test_the_last_place_is_that_of_any_magnitude(peak: float) -> None:
    expected = np.array([peak, 0], np.float32)
    below = np.nextafter(expected, np.float32(0))
    assert difference(expected, below).at_scale == 1


@pytest.mark.parametrize(
    ("promise", "allowed"),
    [
        (EXACT, False),
        (SAME_LIBM, False),
        (close("order"), True),  # not measured: near is enough
        (close("order", 1), False),
        (close("order", 2), True),
    ],
)
def test_only_what_was_measured_is_allowed(promise: Exactness, allowed: bool) -> None:
    expected = np.array([1024, 0], np.float32)
    found = difference(expected, expected + np.float32([0, 2**-12]))
    assert within(found, promise) == allowed


def test_what_was_not_measured_has_to_be_near() -> None:
    expected = np.array([1024, 0], np.float32)
    assert within(difference(expected, expected + np.float32(4)), close("order"))
    assert not within(difference(expected, expected + np.float32(16)), close("order"))


def moved(golden: Golden, tensor: int, steps: int) -> Golden:
    """A copy of the recording whose first element of a tensor is so many ULP of its largest magnitude away."""
    (observation,) = golden.observations
    value = observation.tensors[tensor].copy()
    value.reshape(-1)[0] += steps * np.spacing(np.abs(value).max())
    tensors = MappingProxyType({**observation.tensors, tensor: value})
    return replace(golden, observations=(replace(observation, tensors=tensors),))


@pytest.fixture(scope="module")
def golden() -> Golden:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    return record(MODEL, all_tensors=True)


def last_operator() -> tuple[int, int]:
    """A SOFTMAX and the tensor it makes, which is read by no other."""
    operators = view(tflq.load(MODEL)).ops
    return len(operators) - 1, operators[-1].outputs[0]


@pytest.mark.parametrize(("steps", "verdict", "code"), [(1, Verdict.CLOSE, 5), (10**6, Verdict.DIFFERS, 1)])
def test_a_verdict_and_its_exit_code(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, steps: int, verdict: Verdict, code: int
) -> None:
    index, tensor = last_operator()
    changed = moved(golden, tensor, steps)
    report = verify(MODEL, changed, profile=CAUTIOUS)
    assert report.verdict == verdict
    assert [o.index for o in report.operators if o.status != Status.EXACT] == [index]
    monkeypatch.setattr("tflq.comparison.verification.verifying.verify", lambda *_, **__: report)
    done = commands.tflq("verify", MODEL, "--json")
    assert done.exit_code == code, done.output
    found = json.loads(done.stdout)["operators"][index]
    assert (found["status"], found["promise"]["word"]) == (verdict.value, "close")


def test_a_profile_of_equal_bits_calls_the_same_difference_a_difference(golden: Golden) -> None:
    index, tensor = last_operator()
    report = verify(MODEL, moved(golden, tensor, 1), profile="litert-ref")
    assert report.first_divergent is not None
    assert report.first_divergent.index == index
    assert report.first_divergent.promise == SAME_LIBM


def test_end_to_end_the_promise_is_that_of_the_last_operator() -> None:
    _, tensor = last_operator()
    interpreter = tflq.Interpreter(MODEL, profile=CAUTIOUS)
    with pytest.raises(StateError):
        interpreter.promise(tensor)
    interpreter.allocate_tensors()
    assert interpreter.promise(interpreter.get_input_details()[0]["index"]) == EXACT
    assert interpreter.promise(tensor) == close("a test", 4)
