"""Remarks about calibration data, as far as the samples alone show what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tflq.model.ir import Model, view
from tflq.quantization.runner import Sample

#: Fewer samples than this make ranges and forecasts unsteady.
FEW_SAMPLES = 32
#: Samples that are looked at for repeats and ranges.
LOOKED_AT = 256
#: Whole numbers up to at least this one are probably pixels.
_BRIGHT = 128.0


def remarks_about(model: Model, samples: Sequence[Sample], *, has_scaling: bool = False) -> Iterator[str]:
    """Yield what is wrong with calibration data: too few, repeated, constant, or numbers not scaled."""
    seen = list(islice(samples, LOOKED_AT))
    if (count := len(samples)) < FEW_SAMPLES:
        yield f"few samples: {count}; {FEW_SAMPLES} or more make ranges and forecasts steady, 100 to 500 are usual"
    distinct = len({tuple(sample[t].tobytes() for t in sorted(sample)) for sample in seen})
    if distinct == 1 and len(seen) > 1:
        yield f"constant: all of the first {len(seen)} samples are equal"
    elif 2 * distinct <= len(seen):
        yield f"repeated: {distinct} of the first {len(seen)} samples are distinct"
    for tensor in () if has_scaling else view(model).inputs:
        yield from _range_remarks(view(model).tensors[tensor].name or "input", [s[tensor] for s in seen])


def _range_remarks(name: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield that an input is 0 to 255 as pixels are, without a mean and a standard deviation."""
    if not values or values[0].dtype != np.float32:
        return
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    if low >= 0 and _BRIGHT <= high <= 255 and all(bool(np.all(v == np.rint(v))) for v in values):
        yield (
            f"range: {name} holds whole numbers {low:g} to {high:g}, as pixels do; unless the model was trained on "
            "these, give its --mean and --std (--std 255 for 0 to 1, --mean 127.5 --std 127.5 for -1 to 1)"
        )
