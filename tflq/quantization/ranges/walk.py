"""Run a graph with a tap on every tensor, which may replace results before they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from tflq.engine.interpreter import Plan, State, make_plan
from tflq.engine.interpreter.evaluation import bound, evaluate
from tflq.engine.interpreter.state import variable
from tflq.engine.profiles import by_name
from tflq.errors import UnsupportedError
from tflq.model.ir import Model, view
from tflq.typing import Array

#: Called with a tensor and its value in the order of execution; returns the value that is read from then on.
Tap = Callable[[int, Array], Array]


class Walker:
    """The first subgraph of a model, run one sample at a time; variables are reset for each sample."""

    def __init__(self, model: Model, profile: str) -> None:
        self._model, self._profile = model, by_name(profile)
        self._plans: dict[tuple[tuple[int, ...], ...], tuple[Plan, State]] = {}

    def walk(self, sample: Mapping[int, Array], tap: Tap, until: Collection[int]) -> None:
        """Run a sample until the tensors of `until` are computed; the tap sees all tensors computed on the way."""
        inputs = view(self._model).inputs
        plan, state = self._bound(tuple(sample[t].shape for t in inputs))
        values: list[Array | None] = list(plan.constants)
        for tensor in plan.variables:
            values[tensor] = variable(plan, state, tensor)
        for tensor in inputs:
            values[tensor] = tap(tensor, sample[tensor])
        missing = set(until).difference(inputs)
        with np.errstate(all="ignore"):
            for step in plan.steps:
                if not missing:
                    break
                arguments = [values[tensor] for tensor in step.inputs]
                prepared = bound(plan, step, state, arguments)
                results = evaluate(prepared, step, arguments)
                for tensor, result in zip(step.outputs, results):  # noqa: B905 (updates follow the outputs)
                    values[tensor] = tap(tensor, result)
                for position, result in zip(prepared.updates, results[len(step.outputs) :], strict=True):
                    values[step.inputs[position]] = result
                for tensor in step.last_uses:
                    values[tensor] = None
                missing.difference_update(step.outputs)

    def _bound(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[Plan, State]:
        if shapes not in self._plans:
            inputs = dict(zip(view(self._model).inputs, shapes, strict=True))
            plan = make_plan(self._model, self._profile, input_shapes=inputs)
            for step in plan.steps:
                if step.kernel.session:
                    raise UnsupportedError(step.op, index=step.index, reason="reaches beyond its operands")
            self._plans[shapes] = plan, State()
        plan, state = self._plans[shapes]
        return plan, State(bound=state.bound)
