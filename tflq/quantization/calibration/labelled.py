"""Calibration data from Python callers: samples, their scaling, and their right classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tflq.comparison.verification.scaling import Scaling
from tflq.errors import InputError
from tflq.model.ir import Model
from tflq.quantization.calibration.quarters import Kept, labels_of
from tflq.quantization.calibration.samples import Calibration, CalibrationSource
from tflq.quantization.runner import Sample

Numbers: TypeAlias = "float | Sequence[float] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The samples on which a finished model is compared, None for held-back ones, and the labels of all samples."""

    samples: Sequence[Sample] | None = None
    labels: Sequence[Any] | None = None

    def on(self, judging: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Any] | None]:
        """Return the samples to compare on, and their labels; `judging` if there are none of its own."""
        if self.samples is not None:
            return self.samples, self.labels
        return judging, labels_of(judging, self.labels)


def read_samples(
    model: Model,
    source: CalibrationSource | Calibration,
    mean: Numbers = None,
    std: Numbers = None,
    labels: Iterable[Any] | None = None,
) -> tuple[Kept, list[Any] | None]:
    """Return the samples for a model, scaled if `mean` or `std` is given, and the labels of all samples.

    Only float inputs are scaled.

    Raises:
        InputError: The number of labels differs from the number of samples.
    """
    samples = Kept(_scaled(model, source, mean, std))
    known = None if labels is None else list(labels)
    if known is not None and len(known) != len(samples):
        raise InputError("number of labels", expected=len(samples), got=len(known))
    return samples, known


def read_sequences(
    model: Model, source: CalibrationSource | Calibration, mean: Numbers = None, std: Numbers = None
) -> list[list[Sample]]:
    """Return the samples for a streaming model's step, as `read_samples`, by sequence (`Calibration.follow`)."""
    sequences = list[list[Sample]]()
    for sample, begins in _scaled(model, source, mean, std).follow():
        if begins:
            sequences.append([])
        sequences[-1].append(sample)
    return sequences


def _scaled(model: Model, source: CalibrationSource | Calibration, mean: Numbers, std: Numbers) -> Calibration:
    scaling = None
    if mean is not None or std is not None:
        scaling = Scaling.of(0.0 if mean is None else mean, 1.0 if std is None else std)
    return Calibration(model, source, scaling)
