"""Run the steps of a plan, once or again and again.

Run the steps of a plan: values, memory and work of one subgraph.

Run a plan.

Time the operators of a plan, in the form in which it runs again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from tflq.engine.interpreter.evaluation import (
    State,
    bound,
    bound_within,
    check_inputs,
    check_resources,
    evaluate,
    updates_of,
    variable,
)
from tflq.engine.interpreter.loops import ShapesChanged
from tflq.engine.interpreter.plan import Called, MemoryBudget, Meter, Plan, Shapes, Step, Trace, beyond, call_work
from tflq.engine.interpreter.routine import Routine, routine
from tflq.engine.kernels.kernel import Prepared
from tflq.typing import Array

#: Number of consecutive calls of a subgraph after which it gets a routine.
_TIMES = 3


class Execution:
    """One run of a plan. `meter` counts the work of the whole run, calls included; `outer` are bytes of its callers.

    If all shapes of the plan are known, so is its memory; otherwise it is counted step by step. `called` receives the
    results of the latest call of each subgraph; None if they are not kept.
    """

    def __init__(
        self,
        plan: Plan,
        state: State,
        meter: Meter,
        outer: int,
        keep_all: bool,
        called: dict[int, Called] | None = None,
    ) -> None:
        self.plan, self.state, self.meter, self.outer = plan, state, meter, outer
        self.called = called
        self._keep_all = keep_all
        self._values: list[Array | None] = list(plan.constants)
        self._budget = None if plan.cost.is_settled else MemoryBudget(plan.limits.memory, outer)

    def run(self, inputs: Mapping[int, Array]) -> list[Array | None]:
        """Run all steps; return the kept values by tensor index."""
        values = self._values
        for tensor in self.plan.variables:
            value = variable(self.plan, self.state, tensor)
            values[tensor] = value.copy() if self.state.routine else value  # which changes its arrays in place
        for tensor, value in inputs.items():
            values[tensor] = value
        self._start(inputs)
        for step in self.plan.steps:
            self._run_step(step)
            if not self._keep_all:
                for tensor in step.last_uses:
                    values[tensor] = None
                if self._budget is not None:
                    self._budget.release(step.last_uses)
        return values

    def live_bytes_at(self, step: Step) -> int:
        """Return bytes that are alive while a step runs."""
        return self.outer + (step.live_bytes if self._budget is None else self._budget.total)

    def _start(self, inputs: Mapping[int, Array]) -> None:
        """Compare the known part of the memory with the limit."""
        plan, limit = self.plan, self.plan.limits.memory
        if self._budget is None:
            total = self.outer + (plan.cost.kept_memory if self._keep_all else plan.cost.peak_memory)
            if total > limit:
                raise beyond("", total, limit, "all tensors that are kept" if self._keep_all else "this subgraph")
            return
        for tensor in dict.fromkeys((*plan.variables, *inputs)):
            self._budget.hold(plan.operands[tensor], _present(self._values[tensor]).shape)

    def _run_step(self, step: Step) -> None:
        values = self._values
        arguments = [values[tensor] for tensor in step.inputs]
        prepared, state = step.prepared, self.state
        if self._budget is not None:
            prepared = bound_within(self.plan, step, state.bound, arguments, self._budget, self.meter)
        assert prepared is not None  # each step of a settled plan has it
        session = _CallerAccess(self, step) if step.kernel.session else None
        results = _run_prepared(prepared, step, arguments, state, values, session)
        if self._budget is not None:
            for operand, result in zip(step.node.outputs, results):  # noqa: B905
                self._budget.hold(operand, result.shape, step.place)
        if session is not None:
            check_resources(self.plan, self.state, self.live_bytes_at(step), step.place)


def run_step(plan: Plan, step: Step, state: State, values: list[Array | None]) -> None:
    """Run one step on values by tensor index; add its results and its variables' new values to them.

    Its work counts by itself.
    """
    arguments = [values[tensor] for tensor in step.inputs]
    prepared, _ = bound(plan, step, state.bound, arguments)
    session = None
    if step.kernel.session:
        session = _CallerAccess(Execution(plan, state, Meter(plan.limits.work), 0, True), step)
    _run_prepared(prepared, step, arguments, state, values, session)


def _run_prepared(
    prepared: Prepared,
    step: Step,
    arguments: Sequence[Array | None],
    state: State,
    values: list[Array | None],
    session: _CallerAccess | None,
) -> Sequence[Array]:
    """Evaluate one step; add its results and its variables' new values to the values by tensor index."""
    results = evaluate(prepared, step, arguments, session)
    for tensor, result in zip(step.outputs, results):  # noqa: B905 (updates follow the outputs)
        values[tensor] = result
    for position, result in updates_of(prepared, step, results) if prepared.updates else ():
        tensor = step.inputs[position]
        state.variables[tensor] = values[tensor] = result
    return results


class _CallerAccess:
    """The kernels' access to a running plan: a tflq.engine.kernels.kernel.Session."""

    def __init__(self, execution: Execution, step: Step) -> None:
        self.execution, self.step = execution, step

    @property
    def memory(self) -> dict[object, Any]:
        """State that operators keep from run to run."""
        return self.execution.state.memory

    @property
    def resources(self) -> dict[Hashable, Any]:
        """State that all subgraphs share."""
        return self.execution.state.resources

    def enter(self, subgraph: int) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
        """Return a function that runs a subgraph on its inputs, with fresh variables."""
        return _Call(self.execution, self.step, subgraph)


class _Call:
    """A called subgraph. If the shapes of inputs change, they are planned for as open, not once for each shape."""

    def __init__(self, caller: Execution, step: Step, subgraph: int) -> None:
        self._caller, self._step, self._subgraph = caller, step, subgraph
        self._shapes: tuple[Any, ...] | None = None
        self._planned: Shapes = ()
        self._place = step.place
        self._times = 0  # number of calls with these shapes

    def __call__(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        shapes = tuple([x.shape for x in inputs])
        if shapes != self._shapes:
            self._begin(shapes)
        plan, caller = self._plan, self._caller
        caller.meter.spend(self._work, self._place)
        called, outer = caller.called, caller.live_bytes_at(self._step)
        if called is None and (ready := self._routine(outer)) is not None and ready.admits(self._state):
            made = ready.run(dict(zip(plan.inputs, inputs, strict=True)), self._state)
            return tuple([made.values[tensor] for tensor in plan.outputs])
        if called is not None:
            called.pop(self._subgraph, None)
            outer += sum(value.nbytes for other in called.values() for value in other.values.values())
        execution = Execution(plan, self._state, caller.meter, outer, called is not None, called)
        values = execution.run(dict(zip(plan.inputs, inputs, strict=True)))
        if called is not None:
            kept = (*plan.inputs, *plan.variables, *plan.makers)
            called[self._subgraph] = Called(plan.operands, {tensor: _present(values[tensor]) for tensor in kept})
        return tuple([_present(values[tensor]) for tensor in plan.outputs])

    def _begin(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        if self._shapes is None:
            self._planned = shapes
        else:
            self._planned = tuple(p if p == s else None for p, s in zip(self._planned, shapes, strict=True))
        self._shapes, self._times = shapes, 0
        self._plan, bindings = self._caller.plan.program.plan(self._subgraph, self._planned)
        self._work = self._plan.cost.work + call_work(len(self._plan.steps))
        self._state = State(bound=bindings, resources=self._caller.state.resources)

    def _routine(self, outer: int) -> Routine | None:
        """Return the caller's routine for this subgraph, created at a repeated call; None for other plans."""
        plan, known = self._plan, self._caller.state.called
        self._times += 1
        before, ready = known.get(self._subgraph, (None, None))
        if before is not plan:
            fits = outer + 2 * plan.cost.peak_memory <= plan.limits.memory  # places, and copies from them
            if self._times < _TIMES or not plan.cost.is_settled or plan.variables or not fits:
                return None
            ready = routine(plan)
            known[self._subgraph] = plan, ready
        return ready


def _present(value: Array | None) -> Array:
    assert value is not None  # inputs exist, outputs are kept
    return value


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
    is_plain = not (keep_all or keep_called)
    if is_plain and state.known is plan and state.routine and (made := _by_routine(inputs, state)):
        return made
    check_inputs(plan, inputs)
    plan.program.begin()
    check_resources(plan, state, plan.cost.peak_memory)
    called: dict[int, Called] | None = {} if keep_called else None
    if is_plain and _makes_routine(plan, state) and (made := _by_routine(inputs, state)):
        return made
    meter = Meter(plan.limits.work)
    meter.spent = plan.cost.work
    if copy_inputs:
        inputs = {tensor: value.copy() for tensor, value in inputs.items()}
    with np.errstate(all="ignore"):
        values = Execution(plan, state, meter, 0, keep_all, called).run(inputs)
    kept = {*inputs, *plan.variables, *plan.makers, *plan.outputs} if keep_all else plan.kept
    results = {tensor: array for tensor in sorted(kept) if (array := values[tensor]) is not None}
    makers = {tensor: plan.makers[tensor] for tensor in results if tensor in plan.makers}
    return Trace(results, makers, plan.promises, called or {})


def _makes_routine(plan: Plan, state: State) -> bool:
    """Create the plan's routine at its second run: a single run would not pay for it. Return whether there is one."""
    if state.known is not plan:
        state.known, state.routine = plan, None
    elif state.routine is None:
        state.routine = routine(plan, state.inputs) or False
    return bool(state.routine)


def _by_routine(inputs: Mapping[int, Array], state: State) -> Trace | None:
    """Return the trace of the state's routine; None if it cannot begin, or if its shapes do not last."""
    ready: Routine = state.routine
    if not ready.admits(state):
        return None
    try:
        return ready.run(inputs, state)
    except ShapesChanged:
        state.routine = False
        return None


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
        with suppress(ShapesChanged):
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
