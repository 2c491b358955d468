"""The mechanisms of these tests: the budget of the default selection, many values in one case, forked runtimes."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support import suites, warm
from support.costs import Costs, beyond
from support.each import each
from tflq.engine.runtimes.process import RUNTIMES
from tflq.engine.runtimes.runtime import RuntimeOutputs
from tflq.errors import RuntimeFailed

ROOT = Path(__file__).resolve().parent.parent


def test_what_exceeds_the_budget_is_named(tmp_path: Path) -> None:
    costs = Costs(None, None, tmp_path / "budget.json")
    costs.cases, costs.functions = 12, 5
    assert beyond({"cases": 10, "functions": 5}, costs) == []
    assert beyond({"cases": 10, "functions": 4}, costs) == ["functions 5 of 4"]
    assert beyond({"cases": 9, "functions": 4}, costs) == ["cases 12 of 9", "functions 5 of 4"]


def test_every_value_that_fails_is_named() -> None:
    tried = []

    @each("left", [1, 2])
    @each(("right", "offset"), [(1, 0), pytest.param(2, 0, id="two")])
    def equal(left: int, right: int, offset: int) -> None:
        tried.append((left, right))
        assert left == right + offset

    with pytest.raises(AssertionError, match=r"2 of 2 fail: 1, 2\n  1: AssertionError: 1 of 2 fail: two\n") as raised:
        equal()
    assert tried == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert isinstance(raised.value.__cause__, AssertionError)


def test_an_unexpected_exception_does_not_hide_the_other_values() -> None:
    @each("divisor", [0, 1, 3], ids=["zero", "one", "three"])
    def divides(divisor: int) -> None:
        assert 8 % divisor == 0

    with pytest.raises(AssertionError, match="2 of 3 fail: zero, three\n  zero: ZeroDivisionError"):
        divides()


@each("number", range(3))
@pytest.mark.parametrize("letter", "ab")
def test_fixtures_and_cases_are_passed_on(number: int, letter: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert tmp_path_factory.getbasetemp().exists()
    assert letter in "ab"
    assert number in range(3)


def test_it_is_skipped_only_if_every_value_is() -> None:
    @each("number", [1, 2])
    def odd(number: int) -> None:
        if number == 2 or not some:
            pytest.skip("even")

    some = True
    odd()
    some = False
    with pytest.raises(pytest.skip.Exception, match="even"):
        odd()


def test_values_with_marks_are_refused() -> None:
    with pytest.raises(ValueError, match="cases of their own"):
        each("number", [pytest.param(1, marks=pytest.mark.slow)])


MODEL = (suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite").read_bytes()
linux = pytest.mark.skipif(sys.platform != "linux", reason="children are started there")


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the process ids of children that are forked meanwhile."""
    found: list[int] = []
    fork = warm._Server.fork

    def noted(server: warm._Server, *words: object) -> int:
        found.append(fork(server, *words))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(warm._Server, "fork", noted)
    return found


@linux
def test_a_forked_child_answers_as_a_started_one(forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    shape = tuple(np.load(suites.ROOT / "golden" / "singleop" / "recorded" / "tie_conv_i8_0.npz")["s0_in0"].shape)
    sample = [np.arange(np.prod(shape), dtype=np.int8).reshape(shape)]

    def run() -> RuntimeOutputs:
        return RUNTIMES["litert-ref"].run([MODEL], [sample])

    RUNTIMES["litert-ref"].describe()
    warmed = len(forked)
    one = run()
    assert len(forked) == warmed + 1
    monkeypatch.setenv("TFLQ_ANOTHER_ENVIRONMENT", "1")
    other = run()
    assert len(forked) == warmed + 1
    assert one.description == other.description
    for mine, theirs in zip(one.outputs[0][0], other.outputs[0][0], strict=True):
        np.testing.assert_array_equal(mine, theirs)


@linux
def test_an_error_and_the_end_of_a_forked_child_are_seen(forked: list[int]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    with pytest.raises(RuntimeFailed, match=r"ValueError: .*while loading of model 0"):
        RUNTIMES["litert-ref"].run([b"no model"], [[]])
    with pytest.raises(RuntimeFailed, match="no end after 0 s while "):
        replace(RUNTIMES["litert-ref"], timeout=0.0).run([MODEL], [[]])
    with pytest.raises(ProcessLookupError):
        os.kill(forked[-1], 0)
