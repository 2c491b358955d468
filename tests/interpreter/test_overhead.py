"""What running costs besides the operators themselves."""

from __future__ import annotations

import time

import numpy as np
from toys import PROFILE, graph, tensor

from tflq.interpreter import State, make_plan, run


def test_a_step_costs_microseconds() -> None:
    """Two hundred operators that do nothing, twenty times, best of ten; ten times what is usual would still pass."""
    count = 200
    chain = [("COPY", [i], [i + 1]) for i in range(count)]
    plan, state = make_plan(graph([tensor()] * (count + 1), chain, [0], [count]), PROFILE), State()
    inputs = {0: np.zeros(2, np.int32)}
    best = float("inf")
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(20):
            run(plan, inputs, state)
        best = min(best, (time.perf_counter() - start) / 20 / count)
    print(f"{best * 1e6:.2f} us a step")
    assert best < 20e-6
