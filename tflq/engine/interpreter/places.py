"""Arrays of a routine: tensors that are not alive at the same time share memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.engine.interpreter.memory import size_of
from tflq.engine.interpreter.plan import Plan, Step
from tflq.engine.interpreter.state import initial_value
from tflq.engine.kernels.families.movement import eval_view
from tflq.engine.kernels.families.resources import eval_handle
from tflq.model.ir import CARRIER
from tflq.typing import Array

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
    made = (*plan.inputs, *(tensor for tensor in plan.makers if tensor not in handles))
    dtypes = {tensor: CARRIER[plan.operands[tensor].type] for tensor in made}
    results = sum(len(step.outputs) for step in plan.steps if not is_handle(step))
    own = {tensor: plan.operands[tensor] for tensor in plan.variables}
    kinds = (*dtypes.values(), *(CARRIER[operand.type] for operand in own.values()))
    if any(dtype.hasobject for dtype in kinds) or results + len(plan.inputs) + len(own) != len(dtypes | own):
        return None  # strings, or tensors that are given, made or kept more than once
    lives = {tensor: life for tensor, life in _lives(plan).items() if tensor not in given and tensor not in handles}
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
