"""A plan as a list of calls on arrays with fixed places, for plans that run repeatedly.

Tensors share one block of memory, as far as their shapes are known and their lifetimes allow. A kernel that can fill an
existing array (kernels/filling.py) is bound to these arrays once, which also fixes its result: nothing must be
checked at run time. Values that are certain are computed once (`folding`). Operators that only change a shape become
views, and a called subgraph adds its own calls to the list. The result of every other kernel is checked for type and
shape (`evaluation`), and copied into the block if it is small. Variable tensors have arrays of their own, which kernels
change in place (`Updating`) or get copies of new values. Variables with handles are resources of the run's State; what
is assigned to them is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from tflq.engine.interpreter.binding import failure
from tflq.engine.interpreter.late_calls import (
    Reached,
    copy_values,
    fill_fresh,
    find_filling,
    is_bound_late,
    is_call,
    is_silent,
    run_on_known_variable,
    run_on_variable,
    run_step,
)
from tflq.engine.interpreter.memory import size_of
from tflq.engine.interpreter.places import is_handle, places_of
from tflq.engine.interpreter.plan import Plan, Step
from tflq.engine.interpreter.state import State, check_inputs, variable
from tflq.engine.interpreter.trace import Called, Trace
from tflq.engine.jit.compiled import compiling_is_off
from tflq.engine.jit.machine_calls import MachineCall
from tflq.engine.kernels.families.movement import eval_view
from tflq.engine.kernels.families.resources import OnVariable, Table, Variable, key_of, number_of
from tflq.engine.kernels.families.subgraph_calls import eval_call_once, once
from tflq.engine.kernels.filling import Call
from tflq.engine.kernels.kernel import Prepared
from tflq.errors import TflqError
from tflq.typing import Array

#: The subgraphs in a trace.
_NOTHING: Mapping[int, Called] = MappingProxyType({})
#: Results up to this many bytes are copied, so that their readers can be bound to the copy.
_COPIED = 1 << 16
#: Outputs of the graph from this many bytes on are allocated in each run: binding again costs less than a copy.
_LARGE = 1 << 20


class Routine:
    """The steps of a plan, bound to arrays of their own. One run at a time; results belong to the caller.

    `given` are the inputs of all runs, to which steps are also bound; None if every run brings its own. `called` are
    the routines of subgraphs, by the step that calls them.
    """

    def __init__(
        self,
        plan: Plan,
        places: Mapping[int, Array],
        block: Array,
        given: Mapping[int, Array] | None,
        called: Mapping[int, Routine],
        reached: Reached,
    ) -> None:
        self._plan, self._given, self._called, self._reached = plan, given, called, reached
        self._shared = (block, *(given or {}).values(), *(places[tensor] for tensor in plan.variables))
        self._values: list[Array | None] = list(plan.constants)
        for tensor, place in places.items():
            self._values[tensor] = place
        certain = plan.folding.everything()
        self._fixed = {t for t, value in enumerate(plan.constants) if value is not None} | {
            *plan.expected,
            *plan.variables,
            *certain,
        }
        for tensor, value in certain.items():
            self._values[tensor] = value
        self._variables = [(tensor, places[tensor]) for tensor in plan.variables]
        self._inputs = [(t, place, place.dtype, place.shape) for t in plan.inputs for place in (places[t],)]
        self._steps: list[Step] = []
        self._calls: list[Call] = []
        for step in plan.steps:
            if not step.outputs or not certain.keys() >= set(step.outputs):
                self._bind(step, places)
        silent = all(isinstance(call, MachineCall) or is_silent(call) for call in self._calls)
        self._is_quiet = silent and not compiling_is_off()
        self._outputs = [(tensor, tensor in self._fixed) for tensor in sorted(plan.kept)]
        self._makers = {tensor: plan.makers[tensor] for tensor, _ in self._outputs if tensor in plan.makers}

    def admits(self, state: State) -> bool:
        """Return whether a run can begin: subgraphs that run once have run, and all variables fit into the memory."""
        reached, resources = self._reached, state.resources
        if not resources:
            return not reached.once
        for entry in resources.values():
            if isinstance(entry, Table):
                return False
        held = sum([e.value.nbytes for e in resources.values() if isinstance(e, Variable) and e.value is not None])
        fits = self._plan.peak_memory + held + reached.assigned <= self._plan.limits.memory
        return fits and reached.once <= resources.keys()

    def run(self, inputs: Mapping[int, Array], state: State) -> Trace:
        """Run all steps on the graph's inputs and return the trace of the kept tensors.

        Inputs are copied unless they are those given. The state's variables become the routine's arrays.

        Raises:
            InputError: See `check_inputs`.
        """
        self._start(inputs, state)
        if self._is_quiet:
            self._run()
        else:
            with np.errstate(all="ignore"):
                self._run()
        values, outputs = self._values, {}
        for tensor, is_fixed in self._outputs:
            value = values[tensor]
            assert value is not None  # guaranteed by check_order
            outputs[tensor] = value.copy() if is_fixed else value
        return Trace(outputs, self._makers, self._plan.promises, _NOTHING)

    def timed(self, inputs: Mapping[int, Array], state: State) -> Iterator[tuple[Step, float]]:
        """Run all steps as `run` does, and yield the step and the seconds of each call."""
        self._start(inputs, state)
        with np.errstate(all="ignore"):
            for step, call in zip(self._steps, self._calls, strict=True):
                begun = perf_counter()
                call()
                yield step, perf_counter() - begun

    def _start(self, inputs: Mapping[int, Array], state: State) -> None:
        self._reached.resources = state.resources
        if inputs is not self._given:
            self._take(inputs)
        for tensor, place in self._variables:
            if state.variables.get(tensor) is not place:
                place[...] = variable(self._plan, state, tensor)
                state.variables[tensor] = place

    def _take(self, inputs: Mapping[int, Array]) -> None:
        if len(inputs) != len(self._inputs):
            check_inputs(self._plan, inputs)
        for tensor, place, dtype, shape in self._inputs:
            value = inputs.get(tensor)
            if value is None or value.dtype != dtype or value.shape != shape:
                check_inputs(self._plan, inputs)
            else:
                place[...] = value

    def _run(self) -> None:
        number = 0
        try:
            for number, call in enumerate(self._calls):  # noqa: B007 (read if a call fails)
                call()
        except TflqError:
            raise
        except Exception as error:
            step = self._steps[number]
            raise failure(step.op, step.index, "eval", error) from error

    def _bind(self, step: Step, places: Mapping[int, Array]) -> None:
        """Add the step's call, if there is one."""
        prepared, values = step.prepared, self._values
        assert prepared is not None  # the plan is settled
        arguments: list[Any] = [values[tensor] for tensor in step.inputs]
        if is_handle(step):
            self._fixed.update(step.outputs)
            values[step.outputs[0]] = prepared.data
            return
        if prepared.eval is eval_call_once:
            self._reached.once.add(once(prepared.data))
            return
        if all(tensor < 0 or tensor in self._fixed for tensor in step.inputs):
            if prepared.eval is eval_view and not set(step.inputs) & set(self._plan.variables):
                self._fixed.update(step.outputs)
                for tensor, view in zip(step.outputs, eval_view(prepared.data, *arguments), strict=True):
                    values[tensor] = view
                return
            filling = find_filling(step, prepared)
            if filling is not None and all(tensor in places for tensor in step.outputs):
                call = filling.bound(prepared.data, [places[tensor] for tensor in step.outputs], *arguments)
                if call is not None and self._is_large_result(step, places):
                    for tensor in step.outputs:
                        values[tensor] = None
                    self._add(step, partial(fill_fresh, filling, prepared, step, values, arguments))
                    return
                if call is not None:
                    self._fixed.update(step.outputs)
                    self._add(step, call)
                    return
        if step.index in self._called:
            self._call(step, places)
            return
        if isinstance(prepared.eval, OnVariable):
            self._reach(step, prepared, prepared.eval, places)
            return
        targets = [place for t in step.outputs if (place := places.get(t)) is not None and place.nbytes <= _COPIED]
        if len(targets) == len(step.outputs):
            self._fixed.update(step.outputs)
            self._add(step, partial(run_step, prepared, step, values, targets))
        else:
            for tensor in step.outputs:
                values[tensor] = None
            self._add(step, partial(run_step, prepared, step, values, (), self._shared))

    def _is_large_result(self, step: Step, places: Mapping[int, Array]) -> bool:
        """Return whether the step makes large outputs of the graph that no step reads."""
        made = set(step.outputs)
        is_read = any(made & set(other.inputs) for other in self._plan.steps)
        is_large = all(places[tensor].nbytes >= _LARGE for tensor in made)
        return made <= set(self._plan.kept) and is_large and not is_read

    def _call(self, step: Step, places: Mapping[int, Array]) -> None:
        called = self._called[step.index]
        self._add(step, partial(copy_values, self._values, step.inputs, [place for _, place, _, _ in called._inputs]))
        self._steps += called._steps
        self._calls += called._calls
        self._add(step, partial(copy_values, called._values, called._plan.outputs, [places[t] for t in step.outputs]))
        self._fixed.update(step.outputs)

    def _reach(self, step: Step, prepared: Prepared, evaluate: OnVariable, places: Mapping[int, Array]) -> None:
        values = self._values
        targets = [places[tensor] for tensor in step.outputs if places[tensor].nbytes <= _COPIED]
        if len(targets) == len(step.outputs):
            self._fixed.update(step.outputs)
        else:
            values[step.outputs[0]] = None
        if not step.outputs:
            self._reached.assigned += sum(
                size_of(operand, operand.shape) for operand in step.node.inputs[1:] if operand
            )
        general = partial(run_on_variable, prepared, step, values, targets, self._reached)
        handle, array = values[step.inputs[0]], values[step.inputs[1]] if step.inputs[1:] else None
        fixed = [array] if array is not None and step.inputs[1] in self._fixed else targets
        if handle is None or not fixed:
            self._add(step, general)
        else:
            quick = partial(evaluate.quick, prepared.data)
            self._add(
                step, partial(run_on_known_variable, general, quick, self._reached, key_of(number_of(handle)), *fixed)
            )

    def _add(self, step: Step, call: Call) -> None:
        self._steps.append(step)
        self._calls.append(call)


def routine(plan: Plan, given: Mapping[int, Array] | None = None) -> Routine | None:
    """Return the plan's routine; None if it needs more than arrays of known shapes, or has no memory for them.

    `given` are the inputs, if they are the same arrays in every run.
    """
    return _routine(plan, Reached(), given)


def _routine(plan: Plan, reached: Reached, given: Mapping[int, Array] | None = None) -> Routine | None:
    if not plan.is_settled or any(is_bound_late(step) for step in plan.steps):
        return None
    placed = places_of(plan, given or {})
    callees = {step.index: _callee(plan, step) for step in plan.steps if is_call(step.prepared)}
    if any(callee.variables for callee in callees.values()):
        return None  # every call begins with fresh ones
    called = {index: _routine(callee, reached) for index, callee in callees.items()}
    if placed is None or None in called.values():
        return None
    inner = {index: each for index, each in called.items() if each is not None}
    return Routine(plan, *placed, given, inner, reached)


def _callee(plan: Plan, step: Step) -> Plan:
    assert step.prepared is not None  # the plan is settled
    called, _ = plan.program.plan(step.prepared.data.subgraphs[0], tuple(plan.operands[t].shape for t in step.inputs))
    return called
