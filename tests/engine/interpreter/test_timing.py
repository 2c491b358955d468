"""Times of operators: each operator of the subgraph has one, whatever form the plan takes."""

from __future__ import annotations

import numpy as np
import pytest

from support import suites
from tflq.engine.api.files import load
from tflq.engine.api.interpreter import Interpreter, operator_times
from tflq.engine.interpreter import State, make_plan, run
from tflq.engine.interpreter.execution import time_operators
from tflq.engine.profiles import by_name
from tflq.errors import StateError

MODELS = suites.ROOT / "golden" / "models"


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_every_operator_has_a_time(runs: int) -> None:
    plan, state = make_plan(load(MODELS / "digits_mobilenet_int8.tflite"), by_name("litert-ref")), State()
    inputs = {t: np.zeros(plan.operands[t].shape, np.int8) for t in plan.inputs}
    for _ in range(runs):
        run(plan, inputs, state)
    times = time_operators(plan, inputs, state)
    assert sorted(times) == [step.index for step in plan.steps]
    assert all(0 <= seconds < 60 for seconds in times.values())
    assert sum(times.values()) > 0


def test_calls_of_a_subgraph_count_for_their_operator() -> None:
    model = suites.ROOT / "golden" / "models" / "digits_lstm_int8.tflite"
    interpreter = Interpreter(model)
    with pytest.raises(StateError, match="allocate_tensors"):
        operator_times(interpreter, 0, 0)
    interpreter.allocate_tensors()
    for _ in range(2):
        interpreter.invoke()
    times = operator_times(interpreter, 0, 0)
    assert [index for index, _ in times] == list(range(len(times)))
