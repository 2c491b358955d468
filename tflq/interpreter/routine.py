"""A plan as a list of calls on arrays that stay where they are: what is run when a plan runs again and again.

Tensors share one block of memory, as far as their shapes are known and their lifetimes allow. A kernel that fills an
array made for it (tflq/kernels/filling.py) is bound to these once, which also decides what its result is: nothing has
to be looked at while the model runs. Operators that only change a shape become views. Every other kernel's result is
held against type and shape as ever (`evaluation`), and is copied into the block where it is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np

from tflq.errors import TflqError
from tflq.interpreter.binding import failure
from tflq.interpreter.evaluation import evaluate
from tflq.interpreter.plan import Plan, Step
from tflq.interpreter.state import check_inputs
from tflq.interpreter.trace import Trace
from tflq.ir import CARRIER
from tflq.kernels.families.movement import eval_view
from tflq.kernels.filling import Call, Filling
from tflq.kernels.kernel import Array, Prepared
from tflq.numerics.compiled import compiling_is_off
from tflq.numerics.pieces import at_once

#: Arrays begin at multiples of this many bytes: a line of the cache.
_ALIGNMENT = 64
#: Bytes of a result that is copied, so that what reads it can be bound to the copy.
_COPIED = 1 << 16


class Routine:
    """The steps of a plan, bound to arrays of their own. One run at a time; what a run gives is the caller's."""

    def __init__(self, plan: Plan, places: Mapping[int, Array], block: Array, threads: int) -> None:
        self._plan, self._block, self._threads = plan, block, threads
        self._pool = ThreadPoolExecutor(threads - 1, "tflq") if threads > 1 else None
        self._values: list[Array | None] = list(plan.constants)
        for tensor, place in places.items():
            self._values[tensor] = place
        self._fixed = {t for t, value in enumerate(plan.constants) if value is not None} | set(plan.expected)
        self._inputs = [(t, place, place.dtype, place.shape) for t in plan.inputs for place in (places[t],)]
        self._steps: list[Step] = []
        self._calls: list[Call] = []
        for step in plan.steps:
            self._bind(step, places)
        silent = all(isinstance(call, partial) and call.func is not _evaluate for call in self._calls)
        self._is_quiet = silent and not compiling_is_off()
        self._outputs = [(tensor, tensor in self._fixed) for tensor in sorted(plan.kept)]
        self._makers = {tensor: plan.makers[tensor] for tensor, _ in self._outputs if tensor in plan.makers}

    def run(self, inputs: Mapping[int, Array]) -> Trace:
        """Run all steps on the graph's inputs, which are copied; the trace holds what a run keeps.

        Raises:
            InputError: As `check_inputs`.
        """
        if len(inputs) != len(self._inputs):
            check_inputs(self._plan, inputs)
        for tensor, place, dtype, shape in self._inputs:
            value = inputs.get(tensor)
            if value is None or value.dtype != dtype or value.shape != shape:
                check_inputs(self._plan, inputs)
            else:
                place[...] = value
        if self._is_quiet:
            self._run()
        else:
            with np.errstate(all="ignore"):
                self._run()
        values, outputs = self._values, {}
        for tensor, is_fixed in self._outputs:
            value = values[tensor]
            assert value is not None  # check_order saw to it
            outputs[tensor] = value.copy() if is_fixed else value
        return Trace(outputs, self._makers, self._plan.promises)

    def _run(self) -> None:
        number = 0
        try:
            for number, call in enumerate(self._calls):  # noqa: B007 (read where a call fails)
                call()
        except TflqError:
            raise
        except Exception as error:
            step = self._steps[number]
            raise failure(step.op, step.index, "eval", error) from error

    def _bind(self, step: Step, places: Mapping[int, Array]) -> None:
        """The step's call, where one is left to be made."""
        prepared, values = step.prepared, self._values
        assert prepared is not None  # the plan is settled
        arguments: list[Any] = [values[tensor] for tensor in step.inputs]
        if all(tensor < 0 or tensor in self._fixed for tensor in step.inputs):
            if prepared.eval is eval_view:
                self._fixed.update(step.outputs)
                for tensor, view in zip(step.outputs, eval_view(prepared.data, *arguments), strict=True):
                    values[tensor] = view
                return
            if isinstance(prepared.eval, Filling) and step.outputs[0] in places:
                out = places[step.outputs[0]]
                if prepared.eval.of(prepared.data, *arguments) == (out.shape, out.dtype):
                    self._fixed.update(step.outputs)
                    self._add(step, prepared.eval.bind(prepared.data, out, *arguments))
                    return
        targets = [place for t in step.outputs if (place := places.get(t)) is not None and place.nbytes <= _COPIED]
        if len(targets) == len(step.outputs):
            self._fixed.update(step.outputs)
            self._add(step, partial(_evaluate, prepared, step, values, targets))
        else:
            for tensor in step.outputs:
                values[tensor] = None
            self._add(step, partial(_evaluate, prepared, step, values, (), self._block))

    def _add(self, step: Step, call: Call) -> None:
        parts = at_once(call, self._threads)
        self._steps.append(step)
        self._calls.append(call if self._pool is None or len(parts) == 1 else partial(_together, self._pool, parts))


def _together(pool: Executor, calls: Sequence[Call]) -> None:
    """Make calls that do not depend on each other, the first of them here; none is left running when this returns."""
    others = [pool.submit(call) for call in calls[1:]]
    try:
        calls[0]()
    finally:
        wait(others)
    for other in others:
        other.result()


def _evaluate(
    prepared: Prepared, step: Step, values: list[Array | None], targets: Sequence[Array], block: Array | None = None
) -> None:
    """Run one step on values by tensor; its results are copied into the targets, or put among the values.

    There nothing may share memory with the block: what is at its place soon is another tensor.
    """
    results = evaluate(prepared, step, [values[tensor] for tensor in step.inputs])
    if block is None:
        for target, result in zip(targets, results, strict=True):
            target[...] = result
    else:
        for tensor, result in zip(step.outputs, results, strict=True):
            values[tensor] = result.copy() if np.may_share_memory(result, block) else result


def routine(plan: Plan, threads: int = 1) -> Routine | None:
    """The plan's routine, in which so many threads compute.

    None where it needs more than arrays of known shapes, or has no memory for them.
    """
    if not plan.is_settled or plan.variables or any(_is_bound_late(step) for step in plan.steps):
        return None
    placed = _places(plan)
    return None if placed is None else Routine(plan, *placed, threads)


def _is_bound_late(step: Step) -> bool:
    prepared = step.prepared
    if prepared is None or bool(prepared.updates) or None in prepared.shapes:
        return True
    return step.kernel.session and not prepared.alone


def _places(plan: Plan) -> tuple[dict[int, Array], Array] | None:
    """Arrays for the graph's inputs and what its steps make, and the block of memory that they share; None beyond the
    memory limit.
    """
    dtypes = {tensor: CARRIER[plan.operands[tensor].type] for tensor in (*plan.inputs, *plan.makers)}
    results = sum(len(step.outputs) for step in plan.steps)
    if any(dtype.hasobject for dtype in dtypes.values()) or results + len(plan.inputs) != len(dtypes):
        return None  # strings, or tensors that are given or made more than once
    lives = _lives(plan)
    sizes = {t: dtypes[t].itemsize * int(np.prod(plan.operands[t].shape)) for t in lives}
    starts, total = _packed(lives, sizes)
    if total > plan.limits.memory:
        return None
    block = np.zeros(total + _ALIGNMENT, np.uint8)
    block = block[-block.ctypes.data % _ALIGNMENT :]
    places = {
        tensor: block[start : start + sizes[tensor]].view(dtypes[tensor]).reshape(plan.operands[tensor].shape)
        for tensor, start in starts.items()
    }
    return places, block


def _lives(plan: Plan) -> dict[int, tuple[int, int]]:
    """The first and the last step at which a tensor's memory is in use. That of views is what they are views of."""
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


def _packed(lives: Mapping[int, tuple[int, int]], sizes: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Starts in a block of memory, and its size: larger tensors first, each at the lowest place that is free while it
    lives.
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
