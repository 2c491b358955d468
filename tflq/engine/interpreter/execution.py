"""Run the steps of a plan: values, memory and work of one subgraph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from tflq.engine.interpreter.evaluation import bound, evaluate, updates_of
from tflq.engine.interpreter.limits import PREPARE_STEP_WORK, Meter, call_work
from tflq.engine.interpreter.memory import Budget, beyond, sizes_of
from tflq.engine.interpreter.plan import Plan, Shapes, Step
from tflq.engine.interpreter.routine import Routine, routine
from tflq.engine.interpreter.state import State, check_resources, variable
from tflq.engine.interpreter.trace import Called
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
        self._budget = None if plan.is_settled else Budget(plan.limits.memory, outer)

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
            total = self.outer + (plan.kept_memory if self._keep_all else plan.peak_memory)
            if total > limit:
                raise beyond("", total, limit, "all tensors that are kept" if self._keep_all else "this subgraph")
            return
        for tensor in dict.fromkeys((*plan.variables, *inputs)):
            self._budget.hold(plan.operands[tensor], _present(self._values[tensor]).shape)

    def _run_step(self, step: Step) -> None:
        values = self._values
        arguments = [values[tensor] for tensor in step.inputs]
        prepared = step.prepared if self._budget is None else self._prepare(step, arguments, self._budget)
        assert prepared is not None  # each step of a settled plan has it
        session = _Session(self, step) if step.kernel.session else None
        results = evaluate(prepared, step, arguments, session)
        for tensor, result in zip(step.outputs, results):  # noqa: B905 (updates follow the outputs)
            values[tensor] = result
        if prepared.updates:
            for position, result in updates_of(prepared, step, results):
                tensor = step.inputs[position]
                self.state.variables[tensor] = values[tensor] = result
        if self._budget is not None:
            for operand, result in zip(step.node.outputs, results):  # noqa: B905
                self._budget.hold(operand, result.shape, step.place)
        if session is not None:
            check_resources(self.plan, self.state, self.live_bytes_at(step), step.place)

    def _prepare(self, step: Step, arguments: Sequence[Array | None], budget: Budget) -> Prepared:
        """Return the step's prepared form, after comparing its memory and work with the limits."""
        before = self.state.bound.get(step.index)
        prepared = bound(self.plan, step, self.state, arguments, budget.room)
        if step.prepared is None:
            is_new = self.state.bound[step.index] is not before
            self.meter.spend((prepared.work or 0) + PREPARE_STEP_WORK * is_new, step.place)
        scratch = prepared.scratch
        size = scratch if isinstance(scratch, int) else scratch(prepared.data, *arguments)
        budget.check(sizes_of(step.node.outputs, prepared.shapes) + size, step.place, "its results and working memory")
        return prepared


def run_step(plan: Plan, step: Step, state: State, values: list[Array | None]) -> None:
    """Run one step on values by tensor index; add its results and its variables' new values to them.

    Its work counts by itself.
    """
    arguments = [values[tensor] for tensor in step.inputs]
    prepared = bound(plan, step, state, arguments)
    session = None
    if step.kernel.session:
        session = _Session(Execution(plan, state, Meter(plan.limits.work), 0, True), step)
    results = evaluate(prepared, step, arguments, session)
    for tensor, result in zip(step.outputs, results):  # noqa: B905 (updates follow the outputs)
        values[tensor] = result
    for position, result in updates_of(prepared, step, results) if prepared.updates else ():
        tensor = step.inputs[position]
        state.variables[tensor] = values[tensor] = result


class _Session:
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
        self._work = self._plan.work + call_work(len(self._plan.steps))
        self._state = State(bound=bindings, resources=self._caller.state.resources)

    def _routine(self, outer: int) -> Routine | None:
        """Return the caller's routine for this subgraph, created at a repeated call; None for other plans."""
        plan, known = self._plan, self._caller.state.called
        self._times += 1
        before, ready = known.get(self._subgraph, (None, None))
        if before is not plan:
            fits = outer + 2 * plan.peak_memory <= plan.limits.memory  # places, and copies from them
            if self._times < _TIMES or not plan.is_settled or plan.variables or not fits:
                return None
            ready = routine(plan)
            known[self._subgraph] = plan, ready
        return ready


def _present(value: Array | None) -> Array:
    assert value is not None  # inputs exist, outputs are kept
    return value
