"""Samples that a device ran one after another without a reset: what one leaves in variables, the next begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.float_graphs import FloatGraph
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.findings import Findings, investigate
from tflq.diagnosis.profile_fit import fit
from tflq.engine.profiles import PROFILES
from tflq.model.ir import Model

Array = NDArray[np.float32]
#: y = x + h / 2, in float32 without rounding for the integers given here; the variable is y of the last step.
ONE, HALF, NONE = np.ones((1, 1)), np.full((1, 1), 0.5), np.zeros(1)
SEQUENCES: tuple[list[float], ...] = ([64, 0, 8], [16, -32, 4], [2, 2, 2])


def recurrent() -> tuple[Model, int, int, int]:
    """A recurrent cell of one unit, its input, its variable and its result."""
    draft = FloatGraph(0)
    x = draft.given(1, 3, 1)
    weights, recurrence, bias = draft.constant(ONE), draft.constant(HALF), draft.constant(NONE)
    state = draft.variable(1, 1)
    options = {"time_major": False, "fused_activation_function": 0}
    (y,) = draft.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, weights, recurrence, bias, state], options)
    return draft.model(), x, state, y


def device(*, resets: bool, dumps_state: bool, wrong: float = 0) -> tuple[Model, list[Dump]]:
    """What a device leaves of every sequence; `wrong` is added to its last result."""
    model, x, state, y = recurrent()
    hidden, dumps = 0.0, []
    for sequence in SEQUENCES:
        hidden = 0.0 if resets else hidden
        made = []
        for step in sequence:
            hidden = step + hidden / 2
            made.append(hidden)
        entries: dict[int, Any] = {x: _array(sequence, (1, 3, 1)), y: _array(made, (1, 3, 1))}
        entries |= {state: _array([hidden], (1, 1))} if dumps_state else {}
        dumps.append(Dump("", entries))
    dumps[-1].tensors[y][0, -1, 0] += wrong
    return model, dumps


def _array(values: list[float], shape: tuple[int, ...]) -> Array:
    return np.array(values, np.float32).reshape(shape)


def found(**kind: Any) -> Findings:
    model, dumps = device(**kind)
    return investigate(model, dumps, PROFILES["litert-ref"])


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("dumps_state", [False, True])
def test_a_state_that_was_carried_on_or_reset_is_no_difference(resets: bool, dumps_state: bool) -> None:
    assert not found(resets=resets, dumps_state=dumps_state).differing
    model, dumps = device(resets=resets, dumps_state=dumps_state)
    assert "litert-ref" in fit(model, dumps).fitting


@pytest.mark.parametrize("resets", [False, True])
def test_what_differs_besides_is_explained_from_the_state_that_it_had(resets: bool) -> None:
    findings = found(resets=resets, dumps_state=True, wrong=0.5)
    assert findings.sample == 2
    assert findings.divergence is not None
    apart = np.argwhere(findings.divergence.expected != findings.divergence.got)
    assert apart.tolist() == [[0, 2, 0]]
