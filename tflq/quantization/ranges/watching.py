"""Observations of float models, stored by quarter of the samples and shared by all candidates.

Let observers see the tensors of a float model on calibration samples.

A float model runs once per quarter for all announced observers. The observations of several quarters are merged. Other
candidates, other turns and the last fit to all samples reuse most of them. An observer whose bins the first batch fixes
sees all samples in one run: the first batches of quarters are not alike.

Ranges of what detectors compute for anchors, by the errors of the boxes and scores that are read.

Most of the energy of boxes is often at anchors with low scores, which callers ignore. So the range of a judged output
is the one with the least error as it is read; values on the way to it count by the scores of their anchors.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain
from typing import TypeAlias

import numpy as np

from tflq.comparison.inspection.layout import OutputLayout, layout_of
from tflq.errors import CalibrationError
from tflq.interrupts import Progress
from tflq.model.ir import Model, TensorType, view
from tflq.quantization.anchors import Reading, Row, reading_of
from tflq.quantization.frontier import Runner, Sample, SharedValues, each
from tflq.quantization.params import Range
from tflq.quantization.quarters import Quarter, parts_of, quarters_of, whole
from tflq.quantization.ranges.objectives import Loss, Quantizer
from tflq.quantization.ranges.observers import Histogram, Observer
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.scheme import tail_region
from tflq.typing import Array, Reals


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """The observers of each tensor after `count` samples.

    `peaks` are the greatest magnitudes of each sample in the graph's inputs, if these are observed.
    """

    of: Mapping[int, tuple[Observer, ...]]
    count: int = 0
    peaks: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

    @staticmethod
    def begin(tensors: Iterable[int], *observers: Observer) -> Observations:
        """Return observations of no samples: the same observers for all tensors."""
        return Observations(dict.fromkeys(tensors, observers))


def observe(
    model: Model,
    samples: Iterable[Sample],
    begun: Observations,
    progress: Progress | None = None,
    together: int | None = None,
) -> Observations:
    """Return the observers of `begun` after all samples of their tensors.

    Memory holds one batch and the observers. Samples are numbered in their order; `together` is the number that may run
    at a time, if that is known.

    Raises:
        CalibrationError: A tensor holds NaN or infinite values, named with its sample; an input is 0 in all samples;
            there are no samples.
    """
    graph = view(model)
    name = {t: graph.tensors[t].name or f"#{t}" for t in begun.of}
    peaks: dict[int, list[float]] = {t: [] for t in graph.inputs if t in begun.of}
    of, count = dict(begun.of), 0
    for values, rows in batches(model, begun.of, samples, together):
        for tensor, value in values.items():
            if value.size:
                check_finite(value, name[tensor], count)
                of[tensor] = tuple(observer.update(value) for observer in of[tensor])
            if tensor in peaks:
                peaks[tensor].extend(np.abs(value).reshape(rows, -1).max(axis=1, initial=0.0).tolist())
        count += rows
        if progress is not None:
            progress("observing sample", count, 0)
    if not count:
        raise CalibrationError("there are no samples")
    for tensor, magnitudes in peaks.items():
        if not any(magnitudes):
            raise CalibrationError("is 0 in all samples, so its range is unknown", name=name[tensor])
    return Observations(of, count, {t: tuple(values) for t, values in peaks.items()})


def batches(
    model: Model, tensors: Collection[int], samples: Iterable[Sample], together: int | None = None
) -> Iterator[tuple[dict[int, Array], int]]:
    """Yield values of tensors for all samples, one or more samples at a time along axis 0, and their number."""
    stream = iter(samples)
    first = next(stream, None)
    if first is None:
        return
    inputs = view(model).inputs
    joinable = bool(inputs) and all(first[t].shape[:1] == (1,) for t in inputs)
    runner = Runner(model, (*tensors, *(t for t in inputs if t not in tensors)), together=together)
    for values in runner.run(chain([first], stream)):
        rows = len(values[inputs[0]]) if joinable else 1
        yield {t: values[t] if rows > 1 else values[t][None] for t in tensors}, rows


def outlying(peaks: Sequence[float], factor: float = 10.0) -> tuple[int, ...]:
    """Return the samples whose greatest magnitude exceeds `factor` times the median sample's."""
    limit = factor * float(np.median(peaks)) if peaks else 0.0
    return tuple(k for k, peak in enumerate(peaks) if peak > limit)


def check_finite(value: Array, name: str, before: int) -> None:
    """Refuse NaN and infinite values in samples (along axis 0), the first of which is number `before`."""
    if not (np.isfinite(value.min()) and np.isfinite(value.max())):
        row = int(np.argmin(np.isfinite(value).reshape(len(value), -1).all(axis=1)))
        bad = value[row][~np.isfinite(value[row])][0]
        raise CalibrationError(f"the float model computes {bad}", sample=before + row, name=name)


def outlying_in(model: Model, samples: Iterable[Sample]) -> tuple[int, ...]:
    """Return the samples whose inputs lie far beyond the others'; bad samples are refused on the way."""
    graph = view(model)
    inputs = [t for t in graph.inputs if graph.tensors[t].type == TensorType.FLOAT32]
    observations = observe(model, samples, Observations.begin(inputs))
    return tuple(sorted({k for peaks in observations.peaks.values() for k in outlying(peaks)}))


#: A tensor, and a new observer as text.
_Wish: TypeAlias = "tuple[int, str]"


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A run of a float model on a quarter of the samples, for new observers."""

    part: Quarter
    begun: Mapping[_Wish, Observer]

    @property
    def observations(self) -> Observations:
        """The observers by tensor."""
        of: dict[int, list[Observer]] = {}
        for (tensor, _), observer in self.begun.items():
            of.setdefault(tensor, []).append(observer)
        return Observations({t: tuple(observers) for t, observers in of.items()})


class Watching:
    """Observers' states of float models that differ only in constants.

    Observers that several callers need should be announced by `expect` first: then one run serves all.
    """

    def __init__(self, shared: SharedValues, jobs: int = 1) -> None:
        self._shared, self.jobs = shared, jobs
        self._expected: dict[bytes, dict[_Wish, Observer]] = {}
        self._seen: dict[tuple[bytes, tuple[int, ...]], dict[_Wish, Observer]] = {}

    def expect(self, floats: FloatModel, begun: Observations) -> None:
        """Add these observers to the next run of a model."""
        announced = {w: o for w, o in _wishes(begun).items() if not _has_one_run(o)}
        self._expected.setdefault(self._shared.constants(floats.constants), {}).update(announced)

    def forget_expected(self) -> None:
        """Forget announced observers; later runs serve only requested ones."""
        self._expected.clear()

    def observe(
        self, floats: FloatModel, samples: Sequence[Sample], begun: Observations, progress: Progress | None = None
    ) -> Observations:
        """Return the state of the observers of `begun`, which are new, after all samples.

        Raises:
            CalibrationError: See `observe` of `ranges.observation`; samples are numbered in the order of the whole.
        """
        wishes = _wishes(begun)
        digest, parts = self._shared.constants(floats.constants), parts_of(samples)
        if any(_has_one_run(observer) for observer in wishes.values()):
            parts = (Quarter(whole(samples), quarters_of(samples)),)
        states_of_parts = [self._seen.setdefault((digest, part.quarters), {}) for part in parts]
        runs = [
            _Run(part, {w: o for w, o in {**self._expected.get(digest, {}), **wishes}.items() if w not in known})
            for part, known in zip(parts, states_of_parts, strict=True)
            if not wishes.keys() <= known.keys()
        ]
        for run in runs:
            self._together(floats, run)  # known before processes begin: all need it
        observed = each(lambda run, tell: self._made(floats, run, tell), runs, self.jobs, progress)
        for run, states in zip(runs, observed, strict=True):
            self._seen[digest, run.part.quarters].update(states)
        merged = {wish: reduce(_merge, [known[wish] for known in states_of_parts]) for wish in wishes}
        of = {t: tuple(merged[t, repr(observer)] for observer in observers) for t, observers in begun.of.items()}
        return Observations(of, len(samples))

    def _made(self, floats: FloatModel, run: _Run, progress: Progress | None) -> dict[_Wish, Observer]:
        """Return the final observers of a run."""
        begun, together = run.observations, self._together(floats, run)
        try:
            after = observe(floats.model, run.part, begun, progress, together)
        except CalibrationError as error:
            if error.sample is None:
                raise
            raise CalibrationError(error.reason, sample=run.part.numbers[error.sample], name=error.name) from error
        return {
            (t, repr(observer)): state
            for t, observers in begun.of.items()
            for observer, state in zip(observers, after.of[t], strict=True)
        }

    def _together(self, floats: FloatModel, run: _Run) -> int:
        """Return how many of the samples can run together without changing a bit of the observed tensors."""
        observed = run.observations.of
        tensors = (*observed, *(t for t in floats.graph.inputs if t not in observed))
        return self._shared.once(("together", tensors), lambda: Runner(floats.model, tensors).together(whole(run.part)))


def _wishes(begun: Observations) -> dict[_Wish, Observer]:
    return {(t, repr(observer)): observer for t, observers in begun.of.items() for observer in observers}


def _has_one_run(observer: Observer) -> bool:
    return isinstance(observer, Histogram) and observer.is_fixed_by_first_batch


def _merge(first: Observer, second: Observer) -> Observer:
    return first.merge(second)


#: Fewer anchors than these could be any other dimension.
_LEAST_ANCHORS = 16
#: Bytes of a tensor on the way to the outputs, above which its range is chosen by its own values.
_BYTES = 1 << 20
#: Samples of the outputs that a loss sees, and elements, if that is more than the least number of samples.
_SAMPLES, _LEAST_SAMPLES, _ELEMENTS = 16, 4, 1 << 22


@dataclass(frozen=True, eq=False)
class AnchorRanges:
    """The tensors of a detector that hold a value for each anchor, and losses of their ranges."""

    model: FloatModel

    @cached_property
    def layout(self) -> OutputLayout | None:
        """The layout of the outputs; None if scores judge nothing in it."""
        if not self.model.graph.outputs:
            return None
        layout = layout_of(self.model.graph)
        return layout if len(layout.groups) > 1 and max(g.anchors for g in layout.groups) >= _LEAST_ANCHORS else None

    @cached_property
    def axes(self) -> Mapping[int, int]:
        """The dimension of anchors, from the end, of tensors behind the last weights that have one of their number."""
        if self.layout is None:
            return {}
        anchors = max(group.anchors for group in self.layout.groups)
        graph, found = self.model.graph, dict[int, int]()
        for index in tail_region(self.model):
            for tensor in graph.op(index).outputs:
                axes = [axis for axis, length in enumerate(graph.tensors[tensor].shape) if length == anchors]
                is_small = 4 * math.prod(graph.tensors[tensor].shape) <= _BYTES
                if len(axes) == 1 and is_small and self.model.is_float(tensor):
                    found[tensor] = axes[0] - len(graph.tensors[tensor].shape)
        return found

    @cached_property
    def needed(self) -> frozenset[int]:
        """The tensors whose first samples a loss reads."""
        return frozenset() if self.layout is None else frozenset({*self.axes, *self.layout.tensors})

    def limit(self, tensor: int) -> int:
        """Return the bytes of the first samples of a tensor that a loss reads."""
        return 4 * _SAMPLES * math.prod(self.model.graph.tensors[tensor].shape)

    def loss(self, tensors: Sequence[int], kept: Mapping[int, Array], quantizer: Quantizer) -> Loss | None:
        """Return the loss of a range that tensors share, from samples [S, ...] of tensors; None if it has none.

        None too if no boxes are read by scores.
        """
        layout = self.layout
        if layout is None or not all(t in kept and len(kept[t]) for t in (*layout.tensors, *tensors)):
            return None
        count = min(len(kept[t]) for t in (*layout.tensors, *tensors))
        elements = sum(math.prod(kept[t].shape[1:]) for t in layout.tensors)
        count = min(count, max(_LEAST_SAMPLES, _ELEMENTS // max(1, elements)))
        rows = [[kept[t][k].reshape(-1).astype(np.float64) for t in layout.tensors] for k in range(count)]
        reading = reading_of(layout, rows)
        if not reading.has_boxes:
            return None
        joint = [t for t in tensors if t in layout.tensors]
        if joint:
            return _as_read(reading, rows, [layout.tensors.index(t) for t in joint], quantizer)
        if not all(t in self.axes for t in tensors):
            return None
        judge = next(k for k, by in enumerate(reading.judges) if by is not None)
        weights = [reading.weights(judge, row) for row in rows]
        values, counts = list[Reals](), list[Reals]()
        for tensor in tensors:
            for k, weight in enumerate(weights):
                assert weight is not None  # that group is judged
                moved = np.moveaxis(kept[tensor][k : k + 1], self.axes[tensor], -1).astype(np.float64)
                read = moved[..., weight > 0]
                values.append(read.reshape(-1))
                counts.append(np.broadcast_to(weight[weight > 0], read.shape).reshape(-1))
        return _weight(np.concatenate(values)[None], np.concatenate(counts), quantizer)


def _as_read(reading: Reading, rows: Sequence[Row], places: Sequence[int], quantizer: Quantizer) -> Loss:
    """Return the mean error of outputs at some places, as they are read."""

    def loss(range_: Range) -> Reals:
        lost = 0.0
        for row in rows:
            near = [quantizer.nearest(v[None], range_)[0] if k in places else v for k, v in enumerate(row)]
            lost += sum(reading.noises(row, near))
        return np.array([lost / max(1, len(rows))])

    return loss


def _weight(values: Reals, weights: Reals, quantizer: Quantizer) -> Loss:
    """Return the weighted mean square error of values [1, N]."""

    def loss(range_: Range) -> Reals:
        error = np.square(values - quantizer.nearest(values, range_))[0]
        return np.array([float(weights @ error) / max(float(weights.sum()), 1e-30)])

    return loss
