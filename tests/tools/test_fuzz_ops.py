"""Random models of one operator each: tflq and LiteRT, every bit."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opfuzz import compare, session
from opfuzz.case import Case
from opfuzz.minimise import minimised
from opfuzz.one_operator import T
from opfuzz.remote import Ended, Ran, litert

pytestmark = pytest.mark.slow

TOOL = Path(__file__).parents[2] / "tools" / "fuzz_ops.py"
COUNT, SEED = 500, 20261


@pytest.fixture(scope="module")
def result() -> dict[str, object]:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    command = [sys.executable, str(TOOL), "--count", str(COUNT), "--seed", str(SEED), "--json", "--limit", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1, 3), done.stderr[-4000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_nothing_differs(result: dict[str, object]) -> None:
    assert result["models"] == COUNT
    assert result["unexplained"] == []


def test_the_run_says_something(result: dict[str, object]) -> None:
    """Most models ran in both, with outputs that are not one value throughout."""
    assert float(str(result["varied"])) >= session.HONEST
    assert int(str(result["elements"])) > 100 * COUNT


def test_a_case_is_the_same_whenever_it_is_drawn() -> None:
    for number in itertools.islice(session.numbers(3, session.operators([])), 40):
        first, second = (session.draw_case(3, number) for _ in range(2))
        assert first.model() == second.model()
        assert all(a.tobytes() == b.tobytes() for a, b in zip(first.samples[0], second.samples[0], strict=True))


def test_a_wrong_kernel_is_found_and_minimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is off by one in one place must be caught, and its case shrunk to a few elements."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    honest = compare.run_tflq

    def off_by_one(case: Any) -> Any:
        result = honest(case)
        if isinstance(result, Ran):
            for outputs in result.outputs:
                outputs[0] = outputs[0] + (outputs[0] == outputs[0].max()).astype(outputs[0].dtype)
        return result

    monkeypatch.setattr(compare, "run_tflq", off_by_one)
    with litert() as live:
        one = next(iter(session.judged(1, session.numbers(1, ["MAXIMUM"]), live)))
        assert one.wrong
        smaller = minimised(one.case, one.outcome, live)
    assert sum(value.size for value in smaller.samples[0]) <= 4


def test_an_abort_of_the_runtime_is_a_result() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    lowest, minus_one = np.array([-(2**63)], np.int64), np.array([-1], np.int64)
    dividing = Case("FLOOR_MOD", (T("int64", (1,)),) * 2, (T("int64", (1,)),), ((lowest, minus_one),))
    with litert() as live:
        assert isinstance(live.run(dividing), Ended)
        (number,) = itertools.islice(session.numbers(1, ["ABS"]), 1)
        assert isinstance(live.run(session.draw_case(1, number)), Ran)


def test_usage() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--ops", "NO_SUCH"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "NO_SUCH" in done.stderr
