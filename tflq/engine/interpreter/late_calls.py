"""Calls of a routine that no array of fixed place serves: copies, results in fresh arrays, variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tflq.engine.interpreter.evaluation import evaluate, updates_of
from tflq.engine.interpreter.plan import Step
from tflq.engine.kernels.families.resources import OnVariable, Variable
from tflq.engine.kernels.families.subgraph_calls import eval_call, eval_call_once
from tflq.engine.kernels.filling import Call, Filling, Fillings, Updating
from tflq.engine.kernels.kernel import Prepared
from tflq.typing import Array


@dataclass(slots=True, eq=False)
class Reached:
    """State besides arrays that the steps of a routine, and of those it calls, reach: a Session without subgraphs.

    `once` are the keys of subgraphs that have to have run; `assigned` are the bytes of all values that are assigned.
    """

    resources: dict[Hashable, Any] = field(default_factory=dict)
    memory: dict[object, Any] = field(default_factory=dict)
    once: set[Hashable] = field(default_factory=set)
    assigned: int = 0

    def enter(self, subgraph: int) -> NoReturn:
        """Refuse a call: no step of a routine that takes a Session makes one."""
        raise RuntimeError(f"subgraph {subgraph} is not part of the routine")


def is_silent(call: Call) -> bool:
    """Return whether a call binds arrays that are there, and makes none."""
    return isinstance(call, partial) and call.func not in (run_step, fill_fresh)


def copy_values(values: Sequence[Array | None], tensors: Sequence[int], targets: Sequence[Array]) -> None:
    """Copy the values of tensors into arrays of their form."""
    for tensor, target in zip(tensors, targets, strict=True):
        target[...] = values[tensor]


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


def is_call(prepared: Prepared | None) -> bool:
    """Return whether a step calls one subgraph and writes all of its results."""
    return prepared is not None and prepared.eval is eval_call and not any(prepared.data.unwritten)


def find_filling(step: Step, prepared: Prepared) -> Filling | Fillings | None:
    """Return the step's eval if it can be bound to arrays: none that it changes may be another of its inputs, too."""
    evaluate = prepared.eval
    if not isinstance(evaluate, Filling | Fillings):
        return None
    is_alone = all(step.inputs.count(step.inputs[position]) == 1 for position in prepared.updates)
    return evaluate if is_alone and (isinstance(evaluate, Updating) or not prepared.updates) else None


def is_bound_late(step: Step) -> bool:
    """Return whether shapes or a Session are known only when the step runs, so that no routine can have it."""
    prepared = step.prepared
    if prepared is None or None in prepared.shapes:
        return True
    is_known = prepared.alone or prepared.eval is eval_call_once or isinstance(prepared.eval, OnVariable)
    return step.kernel.session and not (is_known or is_call(prepared))
