"""Observe groups that share a scale, and choose their ranges.

One operator as a function of its data and its weights, computed by tflq's own float kernel.

The loss that a range causes at an operator's output, computed by the operator itself.

Observe a group of tensors that share a scale, and choose its range.

Run a graph with a tap on every tensor, which may replace results before they are read.

Orders in which activations are observed in a model that is already partly quantized.

Observe ranges of activations in the order that a recipe names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import divergences
from tflq.engine.interpreter import Plan, State, Step, make_plan
from tflq.engine.interpreter.binding import bind
from tflq.engine.interpreter.evaluation import bound, evaluate, inputs_of, variable
from tflq.engine.profiles import by_name
from tflq.errors import TflqError, UnsupportedError
from tflq.interrupts import Progress
from tflq.model.ir import Model, view
from tflq.quantization.anchors import Scores, scores_of
from tflq.quantization.frontier import Sample
from tflq.quantization.params import Params, Range, hull
from tflq.quantization.ranges.objectives import Loss, Points, Quantizer, distance, from_rows, loss, rows_of
from tflq.quantization.ranges.observers import OBSERVERS, FirstSamples, Histogram, Observer, Percentile, Reservoir
from tflq.quantization.ranges.search import SOLVERS, Problem
from tflq.quantization.ranges.watching import AnchorRanges, Observations, Watching, check_finite
from tflq.quantization.recipe import Objective, RangeTarget, Ranging, WatchOrder
from tflq.quantization.scheme.float_graph import FloatModel, with_constants
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import REFERENCE_PROFILE, Form, Scheme, Slot
from tflq.typing import Array, Reals


@dataclass(frozen=True, slots=True, eq=False)
class OperatorLayer:
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


def layer_of(plan: Plan, weights: Multiplied, kept: FirstSamples) -> OperatorLayer | None:
    """Return the operator that multiplies these weights; None if another of its operands is also computed."""
    step = plan.steps[weights.operator]
    position = step.inputs.index(weights.data)
    values = inputs_of(plan, step, {})
    computed = [p for p, t in enumerate(step.inputs) if t >= 0 and values[p] is None and p != position]
    if computed or not kept.samples.size:
        return None
    rank = len(plan.operands[weights.data].shape)
    apart = tuple(sample if sample.ndim == rank else sample[None] for sample in kept.samples)
    alone = OperatorLayer(plan, step, position, weights.position, apart)
    return (
        OperatorLayer(plan, step, position, weights.position, (np.concatenate(apart),)) if _joinable(alone) else alone
    )


def _joinable(layer: OperatorLayer) -> bool:
    pair = layer.data[:2]
    if len(pair) < 2:
        return False
    try:
        joined = layer.output((np.concatenate(pair),), layer.weights)
    except TflqError:
        return False
    return joined.tobytes() == layer.output(pair, layer.weights).tobytes()


def weights_loss(layer: OperatorLayer, axis: int | None, quantizer: Quantizer, objective: Objective) -> Loss:
    """Return the loss of weight ranges [C]: the change of each output channel of the operator."""
    rows, shape = rows_of(layer.weights, axis), layer.weights.shape
    aim = _by_channel(layer.output(layer.data, layer.weights), axis)
    error, values = distance(objective), rows.astype(np.float64)

    def loss(range_: Range) -> Reals:
        weights = from_rows(quantizer.nearest(values, range_), shape, axis).astype(np.float32)
        return error(aim, _by_channel(layer.output(layer.data, weights), axis).values)

    return loss


def data_loss(
    layers: Sequence[OperatorLayer], weights: Sequence[NDArray[np.float32]], quantizer: Quantizer, objective: Objective
) -> Loss:
    """Return the loss of a data range: the change of the outputs of the operators that read the data.

    Outputs are in units of their own root mean square. `weights` are the weights that the operators will use.
    """
    aims = [layer.output(layer.data, layer.weights).astype(np.float64) for layer in layers]
    units = [1 / max(float(np.sqrt(np.mean(np.square(aim)))), 1e-30) for aim in aims]
    together = Points.of_values(np.concatenate([(aim * unit).ravel() for aim, unit in zip(aims, units, strict=True)]))
    error = distance(objective)

    def loss(range_: Range) -> Reals:
        outputs = []
        for layer, own, unit in zip(layers, weights, units, strict=True):
            data = tuple(
                quantizer.nearest(part.reshape(1, -1).astype(np.float64), range_).reshape(part.shape).astype(np.float32)
                for part in layer.data
            )
            outputs.append((layer.output(data, own) * unit).ravel())
        return error(together, np.concatenate(outputs)[None].astype(np.float64))

    return loss


def scores_loss(scores: NDArray[np.float32], beta: float, quantizer: Quantizer) -> Loss:
    """Return the loss of a range of scores [N, C]: the mean divergence of their SOFTMAX's distributions."""
    aim, row = beta * scores.astype(np.float64), scores.reshape(1, -1).astype(np.float64)

    def loss(range_: Range) -> Reals:
        near = beta * quantizer.nearest(row, range_).reshape(aim.shape)
        return np.array([divergences(aim, near).mean()])

    return loss


def _by_channel(output: NDArray[np.float32], axis: int | None) -> Points:
    """Return outputs [N, C] with one row per channel, or as one row if the weights have one range."""
    return Points.of_values(output, None if axis is None else 1)


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
        read = self._layers(group, observations) if search.target is RangeTarget.OUTPUT else []
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
        if search.target is RangeTarget.OUTPUT and any(m.data == tensor for m in self.scheme.multiplied):
            return (first, *values, FirstSamples())
        if (self._scores is not None and tensor == self._scores.tensor) or tensor in self._needed:
            return (first, *values, FirstSamples(limit=self._limit(tensor)))
        return (first, *values)

    def _layers(self, group: Form, observations: Observations) -> list[tuple[OperatorLayer, Multiplied]]:
        """Return the operators that multiply the group's tensors by weights, with samples of their data.

        There are none if such an operator does not read every tensor: outputs would not reveal the tensor's loss.
        """
        layers: list[tuple[OperatorLayer, Multiplied]] = []
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
        if search is None or search.target is not RangeTarget.SCORES or not graph.outputs:
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
        if search is None or search.target is not RangeTarget.SCORES:
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
                prepared, _ = bound(plan, step, state.bound, arguments)
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


def layer_by_layer(chooser: Chooser, samples: Iterable[Sample], progress: Progress | None = None) -> dict[int, Range]:
    """Return ranges by tensor, of one group after another, in the order in which they are complete.

    Each group is observed while all weights and all earlier groups are quantized. The samples run once for every group.
    """
    groups, begun = list(_in_order(chooser)), chooser.begin()
    walker, ranges = Walker(chooser.weighted.model, REFERENCE_PROFILE), dict[int, Range]()
    decided: dict[int, Callable[[Array], Array]] = {}
    for done, group in enumerate(groups):
        tensors = chooser.groups[group]
        watching = _Watching(chooser, {t: begun.of[t] for t in tensors})
        for number, sample in enumerate(samples):
            walker.walk(sample, watching.tap(number, lambda t, x: decided[t](x) if t in decided else x), tensors)
        chosen = chooser.range(group, watching.seen)
        ranges.update(dict.fromkeys(tensors, chosen))
        decided.update(dict.fromkeys(tensors, _quantizing(chooser, group, chosen)))
        if progress is not None:
            progress("ranging group", done + 1, len(groups))
    return ranges


def online(chooser: Chooser, samples: Iterable[Sample], progress: Progress | None = None) -> dict[int, Range]:
    """Return ranges by tensor, from one pass with quantized weights and activations.

    Every activation is quantized to the range observed so far, its own sample included.
    """
    group_of = {t: group for group, tensors in chooser.groups.items() for t in tensors}
    watching = _Watching(chooser, dict(chooser.begin().of))
    walker = Walker(chooser.weighted.model, REFERENCE_PROFILE)

    def quantized(tensor: int, value: Array) -> Array:
        group = group_of.get(tensor)
        return value if group is None else chooser.quantized(group, value, chooser.start(group, watching.seen))

    for number, sample in enumerate(samples):
        walker.walk(sample, watching.tap(number, quantized), group_of)
        if progress is not None:
            progress("observing sample", number + 1, 0)
    chosen = {group: chooser.range(group, watching.seen) for group in chooser.groups}
    return {t: chosen[group] for t, group in group_of.items()}


class _Watching:
    """Observers that see tensors as they are computed."""

    def __init__(self, chooser: Chooser, of: dict[int, tuple[Observer, ...]]) -> None:
        self._of, self._tensors = of, chooser.scheme.model.graph.tensors
        self.seen = Observations(of)

    def tap(self, number: int, then: Tap) -> Tap:
        """Return a tap that lets the observers see sample `number` before `then` replaces values."""

        def seen(tensor: int, value: Array) -> Array:
            if tensor in self._of and value.size:
                check_finite(value[None], self._tensors[tensor].name or f"#{tensor}", number)
                self._of[tensor] = tuple(observer.update(value[None]) for observer in self._of[tensor])
            return then(tensor, value)

        return seen


def _quantizing(chooser: Chooser, group: Form, chosen: Range) -> Callable[[Array], Array]:
    return lambda value: chooser.quantized(group, value, chosen)


def _in_order(chooser: Chooser) -> Iterator[Form]:
    """Yield groups in the order in which their last tensor is computed."""
    graph = chooser.scheme.model.graph

    def made_at(tensor: int) -> int:
        maker = graph.maker(tensor)
        return -1 if maker is None else maker.index

    yield from sorted(chooser.groups, key=lambda group: max(made_at(t) for t in chooser.groups[group]))


def activation_ranges(
    scheme: Scheme,
    samples: Sequence[Sample],
    watching: Watching,
    ranging: Ranging,
    weights: Mapping[Slot, Params],
    progress: Progress | None = None,
) -> dict[int, Range]:
    """Return the range of each tensor that a scheme observes; tensors that share a scale get the same range.

    The samples run once unless `watching` has already seen them, twice with two passes, and once for every group of
    tensors layer by layer.
    """
    chooser = Chooser(scheme, ranging, weights)
    if not chooser.groups:
        return {}
    if ranging.order is WatchOrder.LAYER_BY_LAYER:
        return layer_by_layer(chooser, samples, progress)
    if ranging.order is WatchOrder.ONLINE:
        return online(chooser, samples, progress)
    model = scheme.model if ranging.order is WatchOrder.FLOAT else chooser.weighted
    observations = watching.observe(model, samples, chooser.begin(), progress)
    starts = {group: chooser.start(group, observations) for group in chooser.groups}
    if ranging.two_passes and ranging.activations is not None:
        again = {t: _within(observations.of[t], starts[g]) for g, tensors in chooser.groups.items() for t in tensors}
        observations = watching.observe(model, samples, Observations(again), progress)
    chosen = {group: chooser.range(group, observations, starts[group]) for group in chooser.groups}
    return {t: chosen[group] for group, tensors in chooser.groups.items() for t in tensors}


def _within(first: tuple[Observer, ...], start: Range) -> tuple[Observer, ...]:
    """Return observers for a second pass, whose bins lie within the range of the first pass."""
    again = (FirstSamples(limit=observer.limit) for observer in first if isinstance(observer, FirstSamples))
    return (Histogram.within(start), *again)
