"""Samples of a model with state are read as steps of one run, or as runs of their own: whichever fits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.findings import investigate
from tflq.diagnosis.localization import in_order
from tflq.diagnosis.why import DeviceEvidence, Party, answer
from tflq.engine.profiles import by_name
from tflq.errors import InputWarning
from tflq.model.ir import Model

REF = by_name("litert-ref")
STEPS = ([64, 0, 8], [16, -32, 4], [2, 2, 2], [0, 8, -4])


def stream() -> tuple[Model, int, int]:
    """A recurrent cell, y = x + h / 2, whose result is then doubled; only the doubled result is an output."""
    draft = FloatGraph(0)
    x = draft.given(1, 3, 1)
    weights, recurrence = draft.constant(np.ones((1, 1))), draft.constant(np.full((1, 1), 0.5))
    operands = [x, weights, recurrence, draft.constant(np.zeros(1)), draft.variable(1, 1)]
    (y,) = draft.op("UNIDIRECTIONAL_SEQUENCE_RNN", operands, {"time_major": False, "fused_activation_function": 0})
    (made,) = draft.op("ADD", [y, y], {"fused_activation_function": 0})
    return draft.model(), x, made


def board(*, keeps: bool, wrong: float = 0) -> tuple[Model, tuple[Dump, ...]]:
    """Return the inputs and outputs that a board prints; it keeps its state, or clears it at each call."""
    model, x, y = stream()
    state, dumps = 0.0, []
    for step in STEPS:
        state, made = state if keeps else 0.0, []
        for value in step:
            state = value + state / 2
            made.append(2 * state)
        made[1] += wrong
        entries: dict[int, Any] = {x: np.array(step, np.float32).reshape(1, 3, 1)}
        dumps.append(Dump("", {**entries, y: np.array(made, np.float32).reshape(1, 3, 1)}))
    return model, tuple(dumps)


@pytest.mark.parametrize(
    ("keeps", "said"),
    [
        (True, "read as steps of one run: the state is kept from sample to sample"),
        (False, "read as separate runs: each begins with the initial state"),
    ],
)
def test_the_reading_that_fits_is_taken_and_named(keeps: bool, said: str) -> None:
    model, dumps = board(keeps=keeps)
    with pytest.warns(InputWarning, match=said):
        found = answer(model, DeviceEvidence(tuple(dict(d.tensors) for d in dumps), dumps), REF)
    assert found.mistake is None
    assert found.fault in (Party.NONE, Party.OPEN)
    assert found.findings is not None
    assert found.findings.first is None


def test_a_difference_beside_the_state_is_found_in_its_operator() -> None:
    model, dumps = board(keeps=True, wrong=0.25)
    with pytest.warns(InputWarning, match="steps of one run"):
        steps = in_order(model, dumps, REF)
    assert [dump.continues for dump in steps] == [False, True, True, True]
    found = investigate(model, steps, REF)
    assert found.first is not None
    assert found.first.op == "ADD"
    assert sum(d.differing for o in found.operators for d in o.differences.values()) == len(STEPS)


def test_models_without_state_and_single_samples_need_no_reading() -> None:
    model, dumps = board(keeps=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert in_order(model, dumps[:1], REF) == dumps[:1]
