"""What running costs besides the operators themselves."""

from __future__ import annotations

import numpy as np

from support.toys import PROFILE, graph, tensor
from support.work import at_most
from tflq.engine.interpreter import State, make_plan, run


def test_a_step_takes_a_handful_of_calls() -> None:
    """Two hundred operators that do nothing. Each call takes about a tenth of a microsecond."""
    count = 200
    chain = [("COPY", [i], [i + 1]) for i in range(count)]
    plan, state = make_plan(graph([tensor()] * (count + 1), chain, [0], [count]), PROFILE), State()
    inputs = {0: np.zeros(2, np.int32)}
    with at_most(calls=10 * count) as work:
        run(plan, inputs, state)
    print(f"{work.calls / count:.1f} calls a step")
