"""Observe a group of tensors that share a scale, and choose its range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from tflq.engine.interpreter import Plan, make_plan
from tflq.engine.profiles import by_name
from tflq.quantization.params import Params, Range, hull
from tflq.quantization.ranges.layers import Layer, layer_of
from tflq.quantization.ranges.losses import data_loss, scores_loss
from tflq.quantization.ranges.observation import Observations
from tflq.quantization.ranges.observers import FirstSamples, Histogram, Observer, Percentile, Reservoir
from tflq.quantization.ranges.observers.catalogue import OBSERVERS
from tflq.quantization.ranges.reading import AnchorRanges
from tflq.quantization.ranges.search.objectives import loss
from tflq.quantization.ranges.search.points import Points
from tflq.quantization.ranges.search.problem import Problem
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.ranges.search.solvers import SOLVERS
from tflq.quantization.recipe.ranging import Ranging, Target
from tflq.quantization.scheme.float_graph import FloatModel, with_constants
from tflq.quantization.scheme.modes import REFERENCE_PROFILE
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import Form, Scheme, Slot
from tflq.quantization.scores import Scores, scores_of
from tflq.typing import Array

#: Bytes of scores whose distributions are used to search a range, and the divergence in nats from which it is searched.
SCORES_BYTES, COARSE = 1 << 18, 1e-3
#: Tensors that get one range, by their group.
Groups = Mapping[Form, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Chooser:
    """The choice of ranges from observations, given the parameters that were chosen for the weights."""

    scheme: Scheme
    ranging: Ranging
    weights: Mapping[Slot, Params]

    @cached_property
    def groups(self) -> Groups:
        """The groups whose ranges are wanted, and their tensors."""
        observed = {t for t in self.scheme.observed if t not in self.scheme.model.constants}
        groups = {
            group: tuple(t for t in tensors if t in observed)
            for group, tensors in self.scheme.members.items()
            if group not in self.scheme.fixed
        }
        return {group: tensors for group, tensors in groups.items() if tensors}

    @cached_property
    def weighted(self) -> FloatModel:
        """The float model with weights after quantization."""
        model, changed = self.scheme.model, {}
        for m in self.scheme.multiplied:
            params = self.weights[m.operator, m.position]
            changed[m.tensor] = params.decode(params.encode(model.constants[m.tensor]))
        return with_constants(model, changed)

    def begin(self) -> Observations:
        """Return observers, still empty, for everything that a search will read."""
        observed = {t: self._observers(t) for tensors in self.groups.values() for t in tensors}
        others = (t for t in sorted(self._needed) if t not in observed)
        return Observations({**observed, **{t: (FirstSamples(limit=self._limit(t)),) for t in others}})

    def quantizer(self, group: Form) -> Quantizer:
        """Return the rule that assigns codes to the group's range."""
        return Quantizer(self.ranging.rule, group[1])

    def start(self, group: Form, observations: Observations) -> Range:
        """Return the observed range: the hull of the group's tensors."""
        return hull([observations.of[t][0].range for t in self.groups[group]])

    def range(self, group: Form, observations: Observations, start: Range | None = None) -> Range:
        """Return the chosen range, searched from `start` (None: the observed range)."""
        start = self.start(group, observations) if start is None else start
        search, quantizer = self.ranging.activations, self.quantizer(group)
        if search is None:
            return start
        solver = SOLVERS[search.solver]
        read = self._layers(group, observations) if search.target is Target.OUTPUT else []
        if read:
            layers, weights = [layer for layer, _ in read], [self._dequantize(m) for _, m in read]
            return solver(Problem(data_loss(layers, weights, quantizer, search.objective), start, quantizer))
        as_read = self._anchors.loss(self.groups[group], self._kept(observations), quantizer) if self._needed else None
        if as_read is not None and set(self.groups[group]) & self._needed:
            return solver(Problem(as_read, start, quantizer))
        points = reduce(Points.joined, [_points(observations.of[t]) for t in self.groups[group]])
        chosen = solver(Problem(loss(points, quantizer, search.objective), start, quantizer, points))
        if self._scores is None or self.groups[group] != (self._scores.tensor,):
            return chosen
        kept = _first_samples(observations, self._scores.tensor).samples
        lost = scores_loss(kept.reshape(-1, kept.shape[-1]), self._scores.beta or 1.0, quantizer)
        return chosen if lost(chosen) <= COARSE else solver(Problem(lost, start, quantizer))

    def quantized(self, group: Form, value: Array, range_: Range) -> Array:
        """Return a float tensor after quantization to the group's range and back."""
        flat = value.reshape(1, -1).astype(np.float64)
        return self.quantizer(group).nearest(flat, range_).reshape(value.shape).astype(np.float32)

    def _observers(self, tensor: int) -> tuple[Observer, ...]:
        first, search = OBSERVERS[self.ranging.watch], self.ranging.activations
        if search is None:
            return (first,)
        values = () if isinstance(first, (Histogram, Percentile, Reservoir)) else (Histogram(),)
        if search.target is Target.OUTPUT and any(m.data == tensor for m in self.scheme.multiplied):
            return (first, *values, FirstSamples())
        if (self._scores is not None and tensor == self._scores.tensor) or tensor in self._needed:
            return (first, *values, FirstSamples(limit=self._limit(tensor)))
        return (first, *values)

    def _layers(self, group: Form, observations: Observations) -> list[tuple[Layer, Multiplied]]:
        """Return the operators that multiply the group's tensors by weights, with samples of their data.

        There are none if such an operator does not read every tensor: outputs would not reveal the tensor's loss.
        """
        layers: list[tuple[Layer, Multiplied]] = []
        if not set(self.groups[group]) <= {m.data for m in self.scheme.multiplied}:
            return layers
        for m in self.scheme.multiplied:
            if m.data in self.groups[group]:
                layer = layer_of(self._plan, m, _first_samples(observations, m.data))
                layers += [(layer, m)] if layer is not None else []
        return layers

    @cached_property
    def _scores(self) -> Scores | None:
        """The scores whose range is searched by their distribution; None if there are none."""
        search, graph = self.ranging.activations, self.scheme.model.graph
        if search is None or search.target is not Target.SCORES or not graph.outputs:
            return None
        scores = scores_of(self.scheme.model)
        readers = len(graph.readers(scores.tensor))
        return scores if scores.beta is not None and readers == 1 and scores.tensor not in graph.outputs else None

    @cached_property
    def _anchors(self) -> AnchorRanges:
        return AnchorRanges(self.scheme.model)

    @cached_property
    def _needed(self) -> frozenset[int]:
        """The tensors of anchors whose first samples are kept; none without a search by scores."""
        search = self.ranging.activations
        if search is None or search.target is not Target.SCORES:
            return frozenset()
        needed = self._anchors.needed
        return needed if any(needed.intersection(tensors) for tensors in self.groups.values()) else frozenset()

    def _limit(self, tensor: int) -> int:
        return max(SCORES_BYTES, self._anchors.limit(tensor) if tensor in self._needed else 0)

    def _kept(self, observations: Observations) -> dict[int, Array]:
        """Return the first samples of the tensors of anchors, as far as they were observed."""
        of = observations.of
        kept = {t: [o for o in of[t] if isinstance(o, FirstSamples)] for t in self._needed if t in of}
        return {t: observers[0].samples for t, observers in kept.items() if observers}

    @cached_property
    def _plan(self) -> Plan:
        return make_plan(self.scheme.model.model, by_name(REFERENCE_PROFILE))

    def _dequantize(self, m: Multiplied) -> NDArray[np.float32]:
        values: NDArray[np.float32] = self.weighted.constants[m.tensor]
        return values


def _first_samples(observations: Observations, tensor: int) -> FirstSamples:
    return next(observer for observer in observations.of[tensor] if isinstance(observer, FirstSamples))


def _points(observers: tuple[Observer, ...]) -> Points:
    """Return the values that one of a tensor's observers holds."""
    for observer in observers:
        if isinstance(observer, Histogram):
            return Points.of_histogram(observer)
        if isinstance(observer, Percentile):
            return Points.of_histogram(observer.histogram)
        if isinstance(observer, Reservoir):
            return Points.of_values(observer.values)
    raise AssertionError("a search has an observer of values")
