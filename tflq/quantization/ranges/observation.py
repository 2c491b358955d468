"""Let observers see the tensors of a float model on calibration samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from tflq.errors import CalibrationError
from tflq.model.ir import Model, TensorType, view
from tflq.progress import Progress
from tflq.quantization.ranges.observers import Observer
from tflq.quantization.runner import Runner, Sample
from tflq.typing import Array


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
