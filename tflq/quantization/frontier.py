"""A model run operator by operator, each on all samples before the next one.

Every operator runs once per sample, however often the tensors in between are read on the way. Operators that have not
run yet can be changed in between. The frontier is the set of tensors that the remaining operators will read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.interpreter import Plan, State, Step, make_plan
from tflq.engine.interpreter.execution import run_step
from tflq.engine.interpreter.plan import Bindings
from tflq.engine.interpreter.state import variable
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, Quantization, view, with_graph
from tflq.quantization.batching import batchable
from tflq.quantization.runner import Runner, Sample, join, needed_operators
from tflq.quantization.store import Store
from tflq.typing import Array

#: The shapes of a graph's inputs.
_Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """The replacement of a model's constant: values, and the parameters that decode them."""

    value: Array
    quantization: Quantization | None


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Samples that run together, and the values that live from step to step."""

    number: int
    plan: Plan
    state: State


class Frontier:
    """The first subgraph of a model: some of its operators are done for all samples, the others have yet to run.

    `stops` are the operators before which the frontier is read; operators on which none of them depends are skipped.
    `size` samples run together. `store` holds the frontier.
    """

    def __init__(
        self, model: Model, samples: Sequence[Sample], stops: Collection[int], profile: str, size: int, store: Store
    ) -> None:
        graph = view(model)
        read = _inputs(model, stops)
        kept = sorted({*(op.index for op in needed_operators(model, read)), *stops})
        operators = tuple(graph.op(index).record for index in kept)
        model = with_graph(model, replace(graph.record, outputs=(), operators=operators))
        model = replace(model, signature_defs=None)
        model = batchable(model) if size > 1 else model
        self._place = {index: place for place, index in enumerate(kept)}
        self._read = {t for operator in operators for t in operator.inputs}
        self._store, self._done = store, 0
        self._constants: dict[int, Mapping[int, Constant]] = {}  # by step, of changed operators
        self._steps: dict[tuple[int, int], Step] = {}  # by step and plan, of changed operators
        groups = [join(samples[k : k + size]) for k in range(0, len(samples), size)]
        plans: dict[_Shapes, tuple[Plan, Bindings]] = {}
        self._batches = []
        for number, group in enumerate(groups):
            shapes = tuple(group[t].shape for t in graph.inputs)
            if shapes not in plans:
                by_tensor = dict(zip(graph.inputs, shapes, strict=True))
                plans[shapes] = make_plan(model, by_name(profile), input_shapes=by_tensor), {}
            plan, bindings = plans[shapes]
            self._batches.append(_Batch(number, plan, State(bound=bindings)))
        for tensor in graph.inputs:
            self._keep(tensor, [group[tensor] for group in groups])

    def advance(self, stop: int) -> None:
        """Run all operators before one of the stops."""
        while self._done < self._place[stop]:
            for batch in self._batches:
                for tensor, value in self._results(batch, self._done).items():
                    if (self, tensor) not in self._store:
                        self._store.begin((self, tensor), value.nbytes * len(self._batches))
                    self._store.append((self, tensor), value)
            for tensor in self._batches[0].plan.steps[self._done].last_uses:
                if (self, tensor) in self._store:
                    self._store.drop((self, tensor))
            self._done += 1

    def values(self, tensor: int) -> Iterator[Array]:
        """Yield a tensor of the frontier for all samples, one or more per array along axis 0."""
        return self._store.batches((self, tensor))

    def change(self, stop: int, constants: Mapping[int, Constant]) -> None:
        """Replace constants of a stop that has yet to run, by position."""
        self._constants[self._place[stop]] = constants

    def _results(self, batch: _Batch, place: int) -> dict[int, Array]:
        """Run one step on a batch and return the tensors that later steps read."""
        plan, constants = batch.plan, self._constants.get(place, {})
        step = self._changed(plan, place) if constants else plan.steps[place]
        values: list[Array | None] = list(plan.constants)
        for position, tensor in enumerate(step.inputs):
            if position in constants:
                values[tensor] = constants[position].value
            elif tensor in plan.variables:
                values[tensor] = variable(plan, batch.state, tensor)
            elif (self, tensor) in self._store:
                values[tensor] = self._store.get((self, tensor), batch.number)
        with np.errstate(all="ignore"):
            run_step(plan, step, batch.state, values)
        return {t: value for t in step.outputs if t in self._read and (value := values[t]) is not None}

    def _changed(self, plan: Plan, place: int) -> Step:
        """Return a step with its changed constants, bound at run time."""
        key = place, id(plan)
        if key not in self._steps:
            step, inputs = plan.steps[place], list(plan.steps[place].node.inputs)
            for position, constant in self._constants[place].items():
                operand = inputs[position]
                assert operand is not None  # it is read
                value = constant.value if operand.is_constant else None
                inputs[position] = replace(operand, value=value, quantization=constant.quantization)
            self._steps[key] = replace(step, node=replace(step.node, inputs=tuple(inputs)), prepared=None)
        return self._steps[key]

    def _keep(self, tensor: int, values: Sequence[Array]) -> None:
        if tensor in self._read:
            self._store.begin((self, tensor), sum(value.nbytes for value in values))
            for value in values:
                self._store.append((self, tensor), value)


def together(model: Model, samples: Sequence[Sample], stops: Collection[int], profile: str) -> int:
    """Return how many samples can run together without changing a bit of the tensors that the stops read."""
    return Runner(model, _inputs(model, stops), profile).together(samples)


def _inputs(model: Model, operators: Collection[int]) -> set[int]:
    """Return the tensors that operators read and that the graph computes or receives."""
    graph = view(model)
    computed = {*graph.inputs, *graph.computed}
    return {t for index in operators for t in graph.op(index).inputs if t in computed}
