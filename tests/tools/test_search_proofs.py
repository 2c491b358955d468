"""Proofs of drawn operators, searched for inputs that contradict them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from search_proofs import main, piece

from opfuzz.case import Case
from opfuzz.one_operator import T
from prooffuzz import session
from prooffuzz.draw import FORMS, draw_case
from prooffuzz.refute import counterexample
from prooffuzz.session import Search, Tally
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read
from tflq.proof import ProfileVerdict, Word
from tflq.proof.operator import BoundOperator, bind
from tflq.proof.proof import pairs

#: Cases that take no more than a second.
QUICK = tuple(n for n in range(120) if draw_case(3, n)[0] in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))[:25]


def bound(case: Case, *profiles: str) -> tuple[BoundOperator, BoundOperator]:
    """The case under two profiles that take it."""
    first, second = (bind(read(case.model()), 0, by_name(name)) for name in profiles)
    assert isinstance(first, BoundOperator)
    assert isinstance(second, BoundOperator)
    return first, second


def column(taps: list[int], height: int, op: str = "CONV_2D") -> Case:
    """A window of one column over an image of one column, SAME padding: ties below zero."""
    weights = np.array(taps, np.int8).reshape(1, -1, 1, 1)
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    operands = (
        T("int8", (1, height, 1, 1), 2.0**-5, 0),
        T("int8", weights.shape, 2.0**-3, 0, value=weights),
        T("int32", (1,), 2.0**-8, 0, value=np.zeros(1)),
    )
    given = ("Conv2DOptions", {**options, "fused_activation_function": 0})
    return Case(op, operands, (T("int8", (1, height, 1, 1), 2.0**-5, 0),), (), given, 3)


@pytest.mark.parametrize("taps", [[1, 0, 0], [0, 0, 1], [16, 16, 1], [1, 16, 16]])
def test_a_wrong_proof_is_contradicted(taps: list[int]) -> None:
    """Ties are reached through one tap only, which one of two places sees."""
    pair = bound(column(taps, 2), "litert-ref", "litert-opt")
    feed = counterexample(*pair, np.random.default_rng(0))
    assert feed is not None
    one, other = (b.run(feed) for b in pair)
    assert any((one[t] != other[t]).any() for t in one)


@pytest.mark.slow
def test_every_wrong_verdict_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs that are all called equal."""

    def careless(*words: Any) -> list[ProfileVerdict]:
        return [replace(v, word=Word.EQUAL) for v in pairs(*words)]

    monkeypatch.setattr(session, "pairs", careless)
    tally = Tally()
    list(Search(3).run(QUICK[:10], tally))
    assert tally.wrong
    assert f"case {tally.wrong[0].number}" in str(tally.wrong[0])


@pytest.mark.slow
def test_no_proof_of_drawn_products_is_contradicted() -> None:
    tally = Tally()
    list(Search(3).run(QUICK, tally))
    assert not tally.wrong, str(tally.wrong[0])
    assert tally.equal - tally.ways["the same kernel"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_drawn(form: str) -> None:
    drawn = (draw_case(1, number) for number in range(3000))
    case = next(case for name, case in drawn if name == form)
    assert case.op == form.split(" ")[0] or form == "ANY"


@pytest.mark.slow
def test_no_proof_is_contradicted() -> None:
    tally = piece(20261, 0, 100)
    assert not tally.wrong, str(tally.wrong[0])
    assert tally.equal > 150
    assert {"breakpoints", "sums of", "place", "the same kernel"} <= tally.ways.keys()


@pytest.mark.slow
def test_litert_contradicts_no_proof(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    words = ["search_proofs", "--seed", "4", "--count", "100", "--live", "1", "--profiles", *session.LIVE]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0, capsys.readouterr().out
    assert "contradicted: 0" in capsys.readouterr().out
