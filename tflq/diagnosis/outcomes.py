"""What devices make of an operator, beside what the dump holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.mistakes import Device
from tflq.errors import TflqError
from tflq.inspection.difference import unequal
from tflq.surgery.part import Part

#: By original tensor index.
Results: TypeAlias = "Mapping[int, NDArray[Any]]"


def results(device: Device, alone: Part) -> Results:
    """What a device makes of an operator's inputs, of the results that the dump holds; nothing where it cannot run."""
    try:
        with np.errstate(all="ignore"):
            computed = device(alone)
    except (TflqError, ArithmeticError, LookupError, ValueError):
        return {}  # wrong constants may break what the kernel's own preparation would have guaranteed
    return {t: computed[t] for t in alone.got if t in computed}


def fits(values: Results, alone: Part) -> bool:
    """Whether all results that the dump holds are there, in their form."""
    return all(
        t in values and (values[t].shape, values[t].dtype) == (dumped.shape, dumped.dtype)
        for t, dumped in alone.got.items()
    )


def digest(values: Results, alone: Part) -> bytes | None:
    """A hash over every result that the dump holds; None where one is missing or has another shape or type."""
    if not fits(values, alone):
        return None
    whole = blake2b(digest_size=16)
    for tensor in alone.got:
        whole.update(values[tensor].tobytes())
    return whole.digest()


def score(values: Results, got: Results) -> tuple[int, int]:
    """Elements that agree bit by bit, and all."""
    matching = 0
    for tensor, dumped in got.items():
        value = values.get(tensor)
        if value is not None and value.shape == dumped.shape and value.dtype == dumped.dtype:
            matching += dumped.size - int(np.count_nonzero(unequal(value, dumped)))
    return matching, sum(dumped.size for dumped in got.values())
