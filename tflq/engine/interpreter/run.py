"""Run a plan."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.engine.interpreter.execution import Execution
from tflq.engine.interpreter.limits import Meter
from tflq.engine.interpreter.plan import Plan
from tflq.engine.interpreter.routine import Routine, routine
from tflq.engine.interpreter.state import State, check_inputs, check_resources
from tflq.engine.interpreter.trace import Called, Trace
from tflq.typing import Array


def run(
    plan: Plan,
    inputs: Mapping[int, Array],
    state: State | None = None,
    *,
    keep_all: bool = False,
    keep_called: bool = False,
    copy_inputs: bool = False,
) -> Trace:
    """Execute `plan` on `inputs` (by tensor index) and return its trace.

    The trace holds the graph's outputs, and results that nothing reads; with `keep_all` its inputs, variables and every
    tensor that an operator made. Tensors are released after their last use unless all of them are kept. Arrays in the
    trace may share memory with the inputs unless they are copied. With `keep_called`, it also holds all results of the
    latest call of each subgraph.

    Raises:
        InputError: An input is missing, is not one of the graph's, or does not have the planned type or shape.
        LimitError: The run would exceed the plan's limits on memory or work.
    """
    state = State() if state is None else state
    if state.known is plan and state.routine and not (keep_all or keep_called) and state.routine.admits(state):
        ready: Routine = state.routine
        return ready.run(inputs, state)
    check_inputs(plan, inputs)
    plan.program.begin()
    check_resources(plan, state, plan.peak_memory)
    called: dict[int, Called] | None = {} if keep_called else None
    if not keep_all and not keep_called and (bound := _routine(plan, state)) is not None:
        return bound.run(inputs, state)
    meter = Meter(plan.limits.work)
    meter.spent = plan.work
    if copy_inputs:
        inputs = {tensor: value.copy() for tensor, value in inputs.items()}
    with np.errstate(all="ignore"):
        values = Execution(plan, state, meter, 0, keep_all, called).run(inputs)
    kept = {*inputs, *plan.variables, *plan.makers, *plan.outputs} if keep_all else plan.kept
    results = {tensor: array for tensor in sorted(kept) if (array := values[tensor]) is not None}
    makers = {tensor: plan.makers[tensor] for tensor in results if tensor in plan.makers}
    return Trace(results, makers, plan.promises, called or {})


def _routine(plan: Plan, state: State) -> Routine | None:
    """Return the plan's routine, created at its second run: a single run would not pay for it."""
    if state.known is not plan:
        state.known, state.routine = plan, None
        return None
    if state.routine is None:
        state.routine = routine(plan, state.inputs) or False
    return state.routine if state.routine and state.routine.admits(state) else None
