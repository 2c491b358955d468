"""Calibration data from Python callers: samples, their scaling, and their right classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tflq.comparison.verification.scaling import Scaling
from tflq.errors import InputError
from tflq.model.ir import Model
from tflq.quantization.calibration.quarters import Kept
from tflq.quantization.calibration.samples import Calibration, CalibrationSource

Numbers: TypeAlias = "float | Sequence[float] | None"


def read_samples(
    model: Model,
    source: CalibrationSource | Calibration,
    mean: Numbers = None,
    std: Numbers = None,
    labels: Iterable[int] | None = None,
) -> tuple[Kept, list[int] | None]:
    """Return the samples for a model, scaled if `mean` or `std` is given, and the labels of all samples.

    Only float inputs are scaled.

    Raises:
        InputError: The number of labels differs from the number of samples.
    """
    scaling = None
    if mean is not None or std is not None:
        scaling = Scaling.of(0.0 if mean is None else mean, 1.0 if std is None else std)
    samples = Kept(Calibration(model, source, scaling))
    known = None if labels is None else [int(label) for label in labels]
    if known is not None and len(known) != len(samples):
        raise InputError("number of labels", expected=len(samples), got=len(known))
    return samples, known
