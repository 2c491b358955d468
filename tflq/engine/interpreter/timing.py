"""Time the operators of a plan, in the form in which it runs again and again."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np

from tflq.engine.interpreter.execution import Execution
from tflq.engine.interpreter.limits import Meter
from tflq.engine.interpreter.plan import Plan, Step
from tflq.engine.interpreter.routine import Routine
from tflq.engine.interpreter.state import State
from tflq.typing import Array

#: Seconds by the index of each operator of the subgraph.
Times = dict[int, float]


def time_operators(plan: Plan, inputs: Mapping[int, Array], state: State) -> Times:
    """Run the plan once and return the seconds of each operator, with those of the subgraphs that it calls.

    If `state` holds the plan's routine, its calls are timed. An operator that needs none, such as a RESHAPE that became
    a view, takes 0.

    Raises:
        TflqError: See `run`.
    """
    ready = state.routine if state.known is plan else None
    if isinstance(ready, Routine) and ready.admits(state):
        return _of_routine(ready, plan, inputs, state)
    execution = _Timed(plan, state, inputs)
    with np.errstate(all="ignore"):
        execution.run(inputs)
    return execution.seconds


def _of_routine(routine: Routine, plan: Plan, inputs: Mapping[int, Array], state: State) -> Times:
    seconds: Times = dict.fromkeys((step.index for step in plan.steps), 0.0)
    own = set(map(id, plan.steps))
    operator = -1
    for step, taken in routine.timed(inputs, state):
        if id(step) in own:  # the others are those of a subgraph that the latest operator calls
            operator = step.index
        seconds[operator] += taken
    return seconds


class _Timed(Execution):
    """A run that notes the time of each step."""

    def __init__(self, plan: Plan, state: State, inputs: Mapping[int, Array]) -> None:
        super().__init__(plan, state, Meter(plan.limits.work), 0, keep_all=False)
        self.seconds: Times = {}

    def _run_step(self, step: Step) -> None:
        begun = perf_counter()
        super()._run_step(step)
        self.seconds[step.index] = perf_counter() - begun
