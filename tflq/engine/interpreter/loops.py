"""Calls of a routine, its loops and its branches.

A round of a loop is one list of calls: those of the body, copies of its results to the places of its inputs and to
those of the condition, and the calls of the condition. So nothing is bound or checked from round to round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from tflq.engine.interpreter.binding import failure
from tflq.engine.interpreter.plan import Meter, Step
from tflq.engine.jit.native import MachineCall, MachineChain, chained
from tflq.engine.kernels.control import WhileData, eval_branches, eval_while, holds
from tflq.engine.kernels.families.movement import Copying
from tflq.engine.kernels.families.resources import eval_call
from tflq.engine.kernels.kernel import Call, flat
from tflq.errors import TflqError
from tflq.typing import Array

#: Calls of subgraphs become calls of their callers up to this many: subgraphs may call each other very often.
_MOST_CALLS = 1 << 14


class ShapesChanged(Exception):
    """A loop's values do not keep the shapes that they begin with: the run has to begin again, without a routine."""


@dataclass(slots=True, eq=False)
class Calls:
    """Calls in order, with the step that each belongs to. `loud` are functions of partial calls that make arrays."""

    loud: tuple[Callable[..., Any], ...]
    steps: list[Step] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    _chains: list[tuple[int, Call]] = field(default_factory=list)

    def add(self, step: Step, call: Call) -> None:
        """Add a call, or several in turn."""
        for each in flat([call]):
            self.steps.append(step)
            self.calls.append(each.bound() if isinstance(each, Copying) else each)

    def extend(self, step: Step, other: Calls) -> None:
        """Add the calls of another routine for a step: each, or one for all if there are very many."""
        if len(self.calls) + len(other.calls) <= _MOST_CALLS:
            self.steps += other.steps
            self.calls += other.calls
        else:
            self.add(step, other.run)

    @property
    def is_silent(self) -> bool:
        """True if all calls bind arrays that are there, so that NumPy has nothing to warn of."""
        return all(self._is_silent(call) for call in self.calls)

    def _is_silent(self, call: Call) -> bool:
        if isinstance(call, Rounds | Branch):
            return call.is_silent
        return isinstance(call, MachineCall) or (isinstance(call, partial) and call.func not in self.loud)

    def run(self) -> None:
        """Make the calls."""
        if not self._chains:
            self._chains = chained(self.calls)
        number, call = 0, None
        try:
            for number, call in self._chains:  # noqa: B007 (read if a call fails)
                call()
        except (TflqError, ShapesChanged):
            raise
        except Exception as error:
            step = self.steps[number + (call.failed if isinstance(call, MachineChain) else 0)]
            raise failure(step.op, step.index, "eval", error) from error


class Bound(Protocol):
    """A routine, as a loop needs it: its calls, and its values by tensor, of which the `fixed` keep their places."""

    calls: Calls
    values: list[Array | None]
    fixed: set[int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def copies(source: Bound, tensors: Sequence[int], targets: Sequence[Array], keeps: bool = False) -> list[Call]:
    """Return the calls that copy values of a routine, in order, into arrays of as many elements.

    If it `keeps` shapes, a value of another shape raises ShapesChanged.
    """
    return [
        partial(_copy_value, source.values, tensor, target, keeps)
        if tensor not in source.fixed or (keeps and _present(source.values[tensor]).shape != target.shape)
        else Copying(_present(source.values[tensor]).reshape(target.shape), target)
        for tensor, target in zip(tensors, targets, strict=True)
    ]


def _copy_value(values: Sequence[Array | None], tensor: int, target: Array, keeps: bool) -> None:
    value = _present(values[tensor])
    if keeps and value.shape != target.shape:
        raise ShapesChanged
    target[...] = value.reshape(target.shape)


def _copy_out(place: Array, values: list[Array | None], tensor: int) -> None:
    values[tensor] = place.copy()


def places(routine: Bound) -> list[Array]:
    """Return the arrays of a routine's inputs."""
    return [_present(routine.values[tensor]) for tensor in routine.inputs]


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """A WHILE. `work` are the passes of one round."""

    begin: Calls
    round: Calls
    end: Calls
    condition: Callable[[], Array]
    meter: Callable[[], Meter]
    work: int
    place: str

    @property
    def is_silent(self) -> bool:
        """True if its calls are."""
        return self.begin.is_silent and self.round.is_silent and self.end.is_silent

    def __call__(self) -> None:
        """Run it. Source: while.cc Eval_static."""
        self.begin.run()
        condition, run, meter = self.condition, self.round.run, self.meter()
        while holds(condition()):
            meter.spend(self.work, self.place)
            run()
        self.end.run()


def loop(step: Step, outer: Bound, cond: Bound, body: Bound, meter: Callable[[], Meter], work: int) -> Rounds:
    """Bind a WHILE whose values keep their shapes; if that is not certain, a run finds it out.

    The condition sees what the body made. The copies to the body's inputs follow in the order of the outputs: one that
    is an input has the value that lies there at its turn, and all others, views among them, what the body made.
    """
    assert step.prepared is not None  # called_by saw to it
    data: WhileData = step.prepared.data
    loud = outer.calls.loud
    begin, again, end = Calls(loud), Calls(loud), Calls(loud)
    carried, tested, keeps = places(body), places(cond), not data.fixed
    for call in (*copies(outer, step.inputs, carried), *copies(outer, step.inputs, tested)):
        begin.add(step, call)
    begin.extend(step, cond.calls)
    again.extend(step, body.calls)
    made = [(tensor, body.values[tensor]) for tensor in body.outputs]
    for call in copies(body, body.outputs, tested, keeps):
        again.add(step, call)
    moved: list[Call] = []
    for (tensor, value), forwarded, place in zip(made, data.forwarded, carried, strict=True):
        if forwarded >= 0 and value is place:
            continue
        is_view = forwarded < 0 and value is not None and any(np.may_share_memory(value, other) for other in carried)
        if is_view and value is not None and value.size == place.size:
            kept = np.empty(value.shape, value.dtype)
            again.add(step, Copying(value, kept))
            moved.append(Copying(kept.reshape(place.shape), place))
        else:
            moved += copies(body, [tensor], [place], keeps)
    for call in moved:
        again.add(step, call)
    again.extend(step, cond.calls)
    for tensor, place in zip(step.outputs, carried, strict=True):
        if tensor in outer.fixed:
            target = _present(outer.values[tensor])
            end.add(step, Copying(place.reshape(target.shape), target))
        else:
            end.add(step, partial(_copy_out, place, outer.values, tensor))
    (answer,) = cond.outputs
    return Rounds(begin, again, end, lambda: _present(cond.values[answer]), meter, work, step.place)


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """An IF or a STABLEHLO_CASE: the calls of each branch, copies included."""

    chosen: Callable[[], int]
    branches: tuple[Calls, ...]

    @property
    def is_silent(self) -> bool:
        """True if all of its calls are."""
        return all(branch.is_silent for branch in self.branches)

    def __call__(self) -> None:
        """Run the branch that is taken."""
        self.branches[self.chosen()].run()


def branch(step: Step, outer: Bound, called: Sequence[Bound]) -> Branch:
    """Bind an IF or a STABLEHLO_CASE whose branches make outputs of the same shapes."""
    assert step.prepared is not None  # called_by saw to it
    data, (selector, *given) = step.prepared.data, step.inputs
    branches = tuple(through(step, outer, routine, given) for routine in called)
    return Branch(lambda: data.chosen(_present(outer.values[selector])), branches)


def through(step: Step, outer: Bound, inner: Bound, given: Sequence[int]) -> Calls:
    """Return the calls that run a routine on tensors of its caller and copy its results to the outputs of a step."""
    calls = Calls(outer.calls.loud)
    for call in copies(outer, given, places(inner)):
        calls.add(step, call)
    calls.extend(step, inner.calls)
    for call in copies(inner, inner.outputs, [_present(outer.values[tensor]) for tensor in step.outputs]):
        calls.add(step, call)
    return calls


def called_by(step: Step) -> tuple[tuple[int, ...], int]:
    """Return the subgraphs that a step can call in a routine, and the position of the first input that they get."""
    prepared = step.prepared
    if prepared is None:
        return (), 0
    data = prepared.data
    if prepared.eval is eval_while:
        return (data.cond, data.body), 0
    if prepared.eval in (eval_branches, eval_call) and None not in prepared.shapes and not any(data.unwritten):
        return data.subgraphs, int(prepared.eval is eval_branches)
    return (), 0


def _present(value: Array | None) -> Array:
    assert value is not None  # inputs and outputs of a bound subgraph have places or values
    return value
