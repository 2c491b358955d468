"""A plan as a list of calls on arrays with fixed places, for plans that run repeatedly.

Calls of a routine that no array of fixed place serves: copies, results in fresh arrays, variables.

Arrays of a routine: tensors that are not alive at the same time share memory.

Tensors share one block of memory, as far as their shapes are known and their lifetimes allow. A kernel that can fill an
existing array (kernels/kernel.py) is bound to these arrays once, which also fixes its result: nothing must be
checked at run time. Values that are certain are computed once (`folding`). Operators that only change a shape become
views, and a called subgraph adds its own calls to the list. The result of every other kernel is checked for type and
shape (`evaluation`), and copied into the block if it is small. Variable tensors have arrays of their own, which kernels
change in place (`Updating`) or get copies of new values. Variables with handles are resources of the run's State; what
is assigned to them is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from tflq.engine.interpreter.evaluation import (
    State,
    bound_within,
    check_inputs,
    evaluate,
    initial_value,
    updates_of,
    variable,
)
from tflq.engine.interpreter.loops import Calls, branch, called_by, loop, through
from tflq.engine.interpreter.plan import (
    Bindings,
    Called,
    MemoryBudget,
    Meter,
    Plan,
    Shapes,
    Step,
    Trace,
    call_work,
    size_of,
)
from tflq.engine.jit.compiled import compiling_is_off
from tflq.engine.kernels.control import eval_branches, eval_while
from tflq.engine.kernels.families.movement import eval_view
from tflq.engine.kernels.families.resources import (
    OnVariable,
    Table,
    Variable,
    eval_call_once,
    eval_handle,
    key_of,
    number_of,
    once,
)
from tflq.engine.kernels.kernel import Call, Filling, Fillings, Prepared, Updating
from tflq.errors import TflqError
from tflq.model.ir import CARRIER
from tflq.typing import Array


@dataclass(slots=True, eq=False)
class Reached:
    """State besides arrays that the steps of a routine, and of those it calls, reach: a Session without subgraphs.

    `once` are the keys of subgraphs that have to have run. `assigned` are the bytes of all values that are assigned,
    and `held` those of all blocks of memory. `meter` counts the work of the present run. Calls of one subgraph never
    overlap: they share one of the `routines`.
    """

    resources: dict[Hashable, Any] = field(default_factory=dict)
    memory: dict[object, Any] = field(default_factory=dict)
    once: set[Hashable] = field(default_factory=set)
    assigned: int = 0
    held: int = 0
    meter: Meter = field(default_factory=lambda: Meter(0))
    carries: bool = False  # values from run to run
    may_change: bool = False  # shapes of a loop's values
    routines: dict[tuple[int, Shapes], Routine | None] = field(default_factory=dict)

    def enter(self, subgraph: int) -> NoReturn:
        """Refuse a call: no step of a routine that takes a Session makes one."""
        raise RuntimeError(f"subgraph {subgraph} is not part of the routine")


def fill_fresh(
    filling: Filling | Fillings,
    prepared: Prepared,
    step: Step,
    values: list[Array | None],
    arguments: Sequence[Array | None],
) -> None:
    """Bind one step to fresh arrays, run it, and put them among the values."""
    outs = [np.empty(shape or (), dtype) for shape, dtype in zip(prepared.shapes, step.dtypes, strict=True)]
    call = filling.bound(prepared.data, outs, *arguments)
    assert call is not None  # it was bound to places of this form
    call()
    for tensor, out in zip(step.outputs, outs, strict=True):
        values[tensor] = out


def run_on_known_variable(
    general: Call, quick: Callable[[Variable, Array], bool], reached: Reached, key: Hashable, array: Array
) -> None:
    """Run one step that reads or assigns a variable with a constant handle."""
    entry = reached.resources.get(key)
    if not isinstance(entry, Variable) or not quick(entry, array):
        general()


def run_on_variable(
    prepared: Prepared, step: Step, values: list[Array | None], targets: Sequence[Array], reached: Reached
) -> None:
    """Run one step that reads or assigns a variable, which keeps a copy."""
    handle, *others = (values[tensor] for tensor in step.inputs)
    results = evaluate(prepared, step, [handle, *(_present(value).copy() for value in others)], reached)
    if targets:
        targets[0][...] = results[0]
    else:
        for tensor, result in zip(step.outputs, results, strict=True):
            values[tensor] = result


def _present(value: Array | None) -> Array:
    assert value is not None  # variables have places, and operands of variables are never left out
    return value


def run_step(
    prepared: Prepared, step: Step, values: list[Array | None], targets: Sequence[Array], shared: Sequence[Array] = ()
) -> None:
    """Run one step on values by tensor; copy its results into the targets, or add them to the values.

    Results among the values must not share memory with the block or with given inputs, which are soon overwritten.
    """
    results = evaluate(prepared, step, [values[tensor] for tensor in step.inputs])
    if not shared:
        for target, result in zip(targets, results):  # noqa: B905 (updates follow the outputs)
            target[...] = result
    else:
        for tensor, result in zip(step.outputs, results):  # noqa: B905
            values[tensor] = result.copy() if any(np.may_share_memory(result, x) for x in shared) else result
    for position, result in updates_of(prepared, step, results) if prepared.updates else ():
        np.copyto(_present(values[step.inputs[position]]), result)


def find_filling(step: Step, prepared: Prepared) -> Filling | Fillings | None:
    """Return the step's eval if it can be bound to arrays: none that it changes may be another of its inputs, too."""
    evaluate = prepared.eval
    if not isinstance(evaluate, Filling | Fillings):
        return None
    is_alone = all(step.inputs.count(step.inputs[position]) == 1 for position in prepared.updates)
    return evaluate if is_alone and (isinstance(evaluate, Updating) or not prepared.updates) else None


def is_bound_late(step: Step) -> bool:
    """Return whether shapes, or the size of the working memory, are known only when the step runs."""
    prepared = step.prepared
    return prepared is None or None in prepared.shapes or not isinstance(prepared.scratch, int)


def needs_session(step: Step) -> bool:
    """Return whether a step needs a Session, so that no routine can have it."""
    prepared = step.prepared
    if not step.kernel.session or prepared is None:
        return step.kernel.session
    if is_bound_late(step):
        return prepared.eval is not eval_while
    is_known = prepared.alone or prepared.eval is eval_call_once or isinstance(prepared.eval, OnVariable)
    return not (is_known or called_by(step)[0])


def is_carrying(step: Step) -> bool:
    """Return whether a step changes what later runs read."""
    return step.prepared is not None and (bool(step.prepared.updates) or isinstance(step.prepared.eval, OnVariable))


class Late:
    """Steps of a routine that are bound when they run, within the limits of the run."""

    def __init__(self, plan: Plan, values: list[Array | None], shared: Sequence[Array], reached: Reached) -> None:
        self._plan, self._values, self._shared, self._reached = plan, values, shared, reached
        self._bindings: Bindings = {}
        self.begin()

    def begin(self) -> None:
        """Begin a run, which holds no results yet."""
        self._budget = MemoryBudget(self._plan.limits.memory, sum(array.nbytes for array in self._shared))

    def run(self, step: Step) -> None:
        """Run one step; add its results to the values."""
        values, budget = self._values, self._budget
        arguments = [values[tensor] for tensor in step.inputs]
        prepared = bound_within(self._plan, step, self._bindings, arguments, budget, self._reached.meter)
        run_step(prepared, step, values, (), self._shared)
        for tensor in step.outputs:
            budget.hold(self._plan.operands[tensor], _present(values[tensor]).shape, step.place)

    def release(self, tensors: Sequence[int]) -> None:
        """Forget results that no later step reads."""
        for tensor in tensors:
            self._values[tensor] = None
        self._budget.release(tensors)


#: Alignment of arrays in bytes: a cache line.
_ALIGNMENT = 64


def places_of(plan: Plan, given: Mapping[int, Array]) -> tuple[dict[int, Array], Array] | None:
    """Return arrays for the graph's inputs, unless given, for results and for variables, and the block of memory that
    inputs and results share.

    The result is None beyond the memory limit.
    """
    handles = {tensor for step in plan.steps if is_handle(step) for tensor in step.outputs}
    if handles & {*plan.kept, *plan.inputs}:
        return None
    if not all(plan.known[tensor] for tensor in plan.inputs):
        return None
    made = (*plan.inputs, *(tensor for tensor in plan.makers if tensor not in handles))
    dtypes = {tensor: CARRIER[plan.operands[tensor].type] for tensor in made}
    results = sum(len(step.outputs) for step in plan.steps if not is_handle(step))
    own = {tensor: plan.operands[tensor] for tensor in plan.variables}
    kinds = (*dtypes.values(), *(CARRIER[operand.type] for operand in own.values()))
    if any(dtype.hasobject for dtype in kinds) or results + len(plan.inputs) + len(own) != len(dtypes | own):
        return None  # strings, or tensors that are given, made or kept more than once
    lives = {t: life for t, life in _lives(plan).items() if plan.known[t] and t not in given and t not in handles}
    sizes = {t: dtypes[t].itemsize * int(np.prod(plan.operands[t].shape)) for t in lives}
    starts, total = _pack(lives, sizes)
    kept = sum(value.nbytes for value in given.values()) + sum(size_of(o, o.shape) for o in own.values())
    if total + kept > plan.limits.memory:
        return None
    block = np.zeros(total + _ALIGNMENT, np.uint8)
    block = block[-block.ctypes.data % _ALIGNMENT :]
    places = dict(given) | {
        tensor: block[start : start + sizes[tensor]].view(dtypes[tensor]).reshape(plan.operands[tensor].shape)
        for tensor, start in starts.items()
    }
    places |= {tensor: initial_value(operand) for tensor, operand in own.items()}
    return places, block


def is_handle(step: Step) -> bool:
    """Return whether a step gives the handle of a variable, which is a constant."""
    return step.prepared is not None and step.prepared.eval is eval_handle


def _lives(plan: Plan) -> dict[int, tuple[int, int]]:
    """Return the first and the last step that use a tensor's memory. A view uses the memory of its source."""
    owner: dict[int, int] = {}
    lives: dict[int, tuple[int, int]] = dict.fromkeys(plan.inputs, (-1, -1))

    def use(tensor: int, number: int) -> None:
        for t in {tensor, owner.get(tensor, tensor)} & lives.keys():
            lives[t] = lives[t][0], number

    for number, step in enumerate(plan.steps):
        for tensor in step.inputs:
            use(tensor, number)
        prepared = step.prepared
        if prepared is not None and prepared.eval is eval_view:
            source = step.inputs[prepared.data.position]
            owner.update(dict.fromkeys(step.outputs, owner.get(source, source)))
        for tensor in step.outputs:
            lives[tensor] = number, number
    for tensor in plan.kept:
        use(tensor, len(plan.steps))
    return lives


def _pack(lives: Mapping[int, tuple[int, int]], sizes: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return starts in a block of memory, and its size.

    Larger tensors come first, each at the lowest place that is free during its life.
    """
    starts: dict[int, int] = {}
    total = 0
    for tensor in sorted(lives, key=lambda t: -sizes[t]):
        first, last = lives[tensor]
        others = sorted(
            (starts[t], starts[t] + sizes[t]) for t in starts if lives[t][0] <= last and first <= lives[t][1]
        )
        start = 0
        for begin, end in others:
            if begin - start >= sizes[tensor]:
                break
            start = max(start, -(-end // _ALIGNMENT) * _ALIGNMENT)
        starts[tensor] = start
        total = max(total, start + sizes[tensor])
    return starts, total


#: The subgraphs in a trace.
_NOTHING: Mapping[int, Called] = MappingProxyType({})
#: Results up to this many bytes are copied, so that their readers can be bound to the copy.
_COPIED = 1 << 20
#: Outputs of the graph from this many bytes on are allocated in each run: binding again costs less than a copy.
_LARGE = 1 << 20


class Routine:
    """The steps of a plan, bound to arrays of their own. One run at a time; results belong to the caller.

    `given` are the inputs of all runs, to which steps are also bound; None if every run brings its own. `certain` are
    values of computed tensors that no run changes. `called` are the routines of subgraphs, by the step that calls them.
    """

    def __init__(
        self,
        plan: Plan,
        places: Mapping[int, Array],
        block: Array,
        given: Mapping[int, Array] | None,
        certain: Mapping[int, Array],
        called: Mapping[int, Sequence[Routine]],
        reached: Reached,
    ) -> None:
        self.plan, self._given, self._called, self._reached = plan, given, called, reached
        self.inputs, self.outputs, self.calls = plan.inputs, plan.outputs, Calls((run_step, fill_fresh, Late.run))
        self._shared = (block, *(given or {}).values(), *(places[tensor] for tensor in plan.variables))
        self.values: list[Array | None] = list(plan.constants)
        for tensor, place in places.items():
            self.values[tensor] = place
        self.fixed = {t for t, value in enumerate(plan.constants) if value is not None} | {
            *plan.expected,
            *plan.variables,
            *certain,
        }
        for tensor, value in certain.items():
            self.values[tensor] = value
        self._variables = [(tensor, places[tensor]) for tensor in plan.variables]
        self._inputs = [(t, place, place.dtype, place.shape) for t in plan.inputs for place in (places[t],)]
        self._late = Late(plan, self.values, self._shared, reached)
        unknown = {tensor for tensor in plan.makers if not plan.known[tensor]}
        for step in plan.steps:
            if not step.outputs or not certain.keys() >= set(step.outputs):
                self._bind(step, places)
            if released := unknown.intersection(step.last_uses):
                self.calls.add(step, partial(self._late.release, tuple(released)))
        self._is_quiet = self.calls.is_silent and not compiling_is_off()
        self._outputs = [(tensor, tensor in self.fixed) for tensor in sorted(plan.kept)]
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
        fits = self.plan.cost.peak_memory + held + reached.assigned <= self.plan.limits.memory
        return fits and reached.once <= resources.keys()

    def run(self, inputs: Mapping[int, Array], state: State) -> Trace:
        """Run all steps on the graph's inputs and return the trace of the kept tensors.

        Inputs are copied unless they are those given. The state's variables become the routine's arrays.

        Raises:
            InputError: See `check_inputs`.
        """
        self._start(inputs, state)
        if self._is_quiet:
            self.calls.run()
        else:
            with np.errstate(all="ignore"):
                self.calls.run()
        values, outputs = self.values, {}
        for tensor, is_fixed in self._outputs:
            value = values[tensor]
            assert value is not None  # guaranteed by check_order
            outputs[tensor] = value.copy() if is_fixed else value
        return Trace(outputs, self._makers, self.plan.promises, _NOTHING)

    def timed(self, inputs: Mapping[int, Array], state: State) -> Iterator[tuple[Step, float]]:
        """Run all steps as `run` does, and yield the step and the seconds of each call."""
        self._start(inputs, state)
        with np.errstate(all="ignore"):
            for step, call in zip(self.calls.steps, self.calls.calls, strict=True):
                begun = perf_counter()
                call()
                yield step, perf_counter() - begun

    def _start(self, inputs: Mapping[int, Array], state: State) -> None:
        self._late.begin()
        self._reached.resources = state.resources
        self._reached.meter = Meter(self.plan.limits.work)
        self._reached.meter.spent = self.plan.cost.work
        if inputs is not self._given:
            self._take(inputs)
        for tensor, place in self._variables:
            if state.variables.get(tensor) is not place:
                place[...] = variable(self.plan, state, tensor)
                state.variables[tensor] = place

    def _take(self, inputs: Mapping[int, Array]) -> None:
        if len(inputs) != len(self._inputs):
            check_inputs(self.plan, inputs)
        for tensor, place, dtype, shape in self._inputs:
            value = inputs.get(tensor)
            if value is None or value.dtype != dtype or value.shape != shape:
                check_inputs(self.plan, inputs)
            else:
                place[...] = value

    def _bind(self, step: Step, places: Mapping[int, Array]) -> None:
        """Add the step's call, if there is one."""
        prepared, values = step.prepared, self.values
        if prepared is None or (is_bound_late(step) and step.index not in self._called):
            self.calls.add(step, partial(Late.run, self._late, step))
            return
        arguments: list[Any] = [values[tensor] for tensor in step.inputs]
        if is_handle(step):
            self.fixed.update(step.outputs)
            values[step.outputs[0]] = prepared.data
            return
        if prepared.eval is eval_call_once:
            self._reached.once.add(once(prepared.data))
            return
        if all(tensor < 0 or tensor in self.fixed for tensor in step.inputs):
            if prepared.eval is eval_view and not set(step.inputs) & set(self.plan.variables):
                self.fixed.update(step.outputs)
                for tensor, view in zip(step.outputs, eval_view(prepared.data, *arguments), strict=True):
                    values[tensor] = view
                return
            filling = find_filling(step, prepared)
            if filling is not None and all(tensor in places for tensor in step.outputs):
                call = filling.bound(prepared.data, [places[tensor] for tensor in step.outputs], *arguments)
                if call is not None and self._is_large_result(step, places):
                    for tensor in step.outputs:
                        values[tensor] = None
                    self.calls.add(step, partial(fill_fresh, filling, prepared, step, values, arguments))
                    return
                if call is not None:
                    self.fixed.update(step.outputs)
                    self.calls.add(step, call)
                    return
        if step.index in self._called:
            self._call(step)
            return
        if isinstance(prepared.eval, OnVariable):
            self._reach(step, prepared, prepared.eval, places)
            return
        targets = [place for t in step.outputs if (place := places.get(t)) is not None and place.nbytes <= _COPIED]
        if len(targets) == len(step.outputs):
            self.fixed.update(step.outputs)
            self.calls.add(step, partial(run_step, prepared, step, values, targets))
        else:
            for tensor in step.outputs:
                values[tensor] = None
            self.calls.add(step, partial(run_step, prepared, step, values, (), self._shared))

    def _is_large_result(self, step: Step, places: Mapping[int, Array]) -> bool:
        """Return whether the step makes large outputs of the graph that no step reads."""
        made = set(step.outputs)
        is_read = any(made & set(other.inputs) for other in self.plan.steps)
        is_large = all(places[tensor].nbytes >= _LARGE for tensor in made)
        return made <= set(self.plan.kept) and is_large and not is_read

    def _call(self, step: Step) -> None:
        called, data = self._called[step.index], step.prepared
        assert data is not None  # the plan is settled
        self.fixed.update(tensor for tensor in step.outputs if self.plan.known[tensor])
        if data.eval is eval_while:
            cond, body = called
            work = sum(each.plan.cost.work + call_work(len(each.plan.steps)) for each in called)
            self.calls.add(step, loop(step, self, cond, body, lambda: self._reached.meter, work))
        elif data.eval is eval_branches:
            self.calls.add(step, branch(step, self, called))
        else:
            (only,) = called
            self.calls.extend(step, through(step, self, only, step.inputs))

    def _reach(self, step: Step, prepared: Prepared, evaluate: OnVariable, places: Mapping[int, Array]) -> None:
        values = self.values
        targets = [places[tensor] for tensor in step.outputs if places[tensor].nbytes <= _COPIED]
        if len(targets) == len(step.outputs):
            self.fixed.update(step.outputs)
        else:
            values[step.outputs[0]] = None
        if not step.outputs:
            self._reached.assigned += sum(
                size_of(operand, operand.shape) for operand in step.node.inputs[1:] if operand
            )
        general = partial(run_on_variable, prepared, step, values, targets, self._reached)
        handle, array = values[step.inputs[0]], values[step.inputs[1]] if step.inputs[1:] else None
        fixed = [array] if array is not None and step.inputs[1] in self.fixed else targets
        if handle is None or not fixed:
            self.calls.add(step, general)
        else:
            quick = partial(evaluate.quick, prepared.data)
            self.calls.add(
                step, partial(run_on_known_variable, general, quick, self._reached, key_of(number_of(handle)), *fixed)
            )


def routine(plan: Plan, given: Mapping[int, Array] | None = None) -> Routine | None:
    """Return the plan's routine; None if it needs more than arrays, or has no memory for them.

    `given` are the inputs, if they are the same arrays in every run. A run whose loop changes shapes has to begin
    again, so that it must carry nothing over.
    """
    reached = Reached()
    found = _routine(plan, reached, given)
    return None if reached.carries and reached.may_change else found


def _routine(plan: Plan, reached: Reached, given: Mapping[int, Array] | None = None) -> Routine | None:
    if any(map(needs_session, plan.steps)):
        return None
    reached.carries |= bool(plan.variables) or any(is_carrying(step) for step in plan.steps)
    certain = _certain(plan)
    placed = places_of(plan, {**certain, **(given or {})})
    called: dict[int, list[Routine]] = {}
    for step in plan.steps:
        subgraphs, first = called_by(step)
        reached.may_change |= bool(subgraphs) and is_bound_late(step)
        for subgraph in subgraphs:
            given_shapes = step.inputs[first:]
            if not all(plan.known[t] for t in given_shapes):
                return None
            shapes = tuple(plan.operands[t].shape for t in given_shapes)
            if (subgraph, shapes) not in reached.routines:
                callee, _ = plan.program.plan(subgraph, shapes)
                fresh = bool(callee.variables)  # with which every call begins
                reached.routines[subgraph, shapes] = None if fresh else _routine(callee, reached)
            inner = reached.routines[subgraph, shapes]
            if inner is None:
                return None
            called.setdefault(step.index, []).append(inner)
    if placed is None:
        return None
    reached.held += placed[1].nbytes
    return None if reached.held > plan.limits.memory else Routine(plan, *placed, given, certain, called, reached)


def _certain(plan: Plan) -> dict[int, Array]:
    """Return the values that are certain before the model runs, and the results of steps that read constants alone.

    They are computed once, as far as the memory limit allows, and cannot be written to.
    """
    found, room = dict(plan.folding.everything()), plan.limits.memory - plan.cost.peak_memory
    makers = Counter(tensor for step in plan.steps for tensor in step.outputs)
    for step in plan.steps:
        prepared, known = step.prepared, [t for t in step.inputs if t in found or plan.constants[t] is not None]
        if prepared is None or is_bound_late(step):
            continue
        size = sum(size_of(operand, operand.shape) for operand in step.node.outputs)
        if (
            prepared.updates
            or step.kernel.session
            or len(known) < sum(tensor >= 0 for tensor in step.inputs)
            or any(makers[tensor] > 1 or tensor in found for tensor in step.outputs)
            or any(dtype.hasobject for dtype in step.dtypes)
            or size > room
            or not (known and step.outputs)
        ):
            continue
        arguments = [found.get(tensor, plan.constants[tensor]) for tensor in step.inputs]
        with suppress(TflqError), np.errstate(all="ignore"):  # a run reports the error
            results = evaluate(prepared, step, arguments)
            found.update((t, np.array(result)) for t, result in zip(step.outputs, results, strict=True))
            room -= size
    for value in found.values():
        value.flags.writeable = False
    return found
