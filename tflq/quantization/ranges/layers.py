"""One operator as a function of its data and its weights, computed by tflq's own float kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.interpreter import Plan, Step
from tflq.engine.interpreter.binding import bind
from tflq.engine.interpreter.evaluation import evaluate, inputs_of
from tflq.errors import TflqError
from tflq.quantization.ranges.observers import FirstSamples
from tflq.quantization.scheme.operands import Multiplied
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """An operator with constant weights, and samples of its data.

    The samples are joined along axis 0 if that changes no bit of the results; otherwise they run one by one. `weights`
    are the operator's own.
    """

    plan: Plan
    step: Step
    data_position: int
    weights_position: int
    data: tuple[Array, ...]

    @property
    def weights(self) -> Array:
        """The operator's own weights."""
        values = self.plan.constants[self.step.inputs[self.weights_position]]
        assert values is not None  # they are constant
        return values

    def output(self, data: tuple[Array, ...], weights: Array) -> Array:
        """Return the operator's results for all data, [N, C]: C is the last dimension."""
        outputs = [self._one(part, weights) for part in data]
        return np.concatenate([part.reshape(-1, part.shape[-1]) for part in outputs])

    def _one(self, data: Array, weights: Array) -> Array:
        values = inputs_of(self.plan, self.step, {})
        values[self.data_position], values[self.weights_position] = data, weights
        with np.errstate(all="ignore"):
            return evaluate(bind(self.step, self.plan.profile.arithmetic, values), self.step, values)[0]


def layer_of(plan: Plan, weights: Multiplied, kept: FirstSamples) -> Layer | None:
    """Return the operator that multiplies these weights; None if another of its operands is also computed."""
    step = plan.steps[weights.operator]
    position = step.inputs.index(weights.data)
    values = inputs_of(plan, step, {})
    computed = [p for p, t in enumerate(step.inputs) if t >= 0 and values[p] is None and p != position]
    if computed or not kept.samples.size:
        return None
    rank = len(plan.operands[weights.data].shape)
    apart = tuple(sample if sample.ndim == rank else sample[None] for sample in kept.samples)
    alone = Layer(plan, step, position, weights.position, apart)
    return Layer(plan, step, position, weights.position, (np.concatenate(apart),)) if _joinable(alone) else alone


def _joinable(layer: Layer) -> bool:
    pair = layer.data[:2]
    if len(pair) < 2:
        return False
    try:
        joined = layer.output((np.concatenate(pair),), layer.weights)
    except TflqError:
        return False
    return joined.tobytes() == layer.output(pair, layer.weights).tobytes()
