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
            made = device(alone)
    except (TflqError, ArithmeticError, LookupError, ValueError):
        return {}  # wrong constants may break what the kernel's own preparation would have guaranteed
    return {t: made[t] for t in alone.got if t in made}


def fits(values: Results, alone: Part) -> bool:
    """Whether all results that the dump holds are there, in their form."""
    return all(
        t in values and values[t].shape == seen.shape and values[t].dtype == seen.dtype for t, seen in alone.got.items()
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
    for tensor, seen in got.items():
        value = values.get(tensor)
        if value is not None and value.shape == seen.shape and value.dtype == seen.dtype:
            matching += seen.size - int(np.count_nonzero(unequal(value, seen)))
    return matching, sum(seen.size for seen in got.values())
