"""What devices make of an operator, beside what the dump holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Fault:
    """A hypothesis that raised an exception which is no refusal: its name, the exception's class and text."""

    name: str
    kind: str
    text: str


def results(device: Device, alone: Part, name: str = "", faults: dict[str, Fault] | None = None) -> Results:
    """Return what a device computes of the results that the dump holds; nothing where it cannot run.

    Wrong constants may break what the kernel's own preparation would have guaranteed. An exception that is no refusal
    is noted in `faults`, under the hypothesis's name.
    """
    try:
        with np.errstate(all="ignore"):
            computed = device(alone)
    except TflqError:
        return {}
    except Exception as error:
        if faults is not None:
            faults[name] = Fault(name, type(error).__name__, str(error))
        return {}
    return {t: computed[t] for t in alone.got if t in computed}


def fits(values: Results, alone: Part) -> bool:
    """Return whether all results that the dump holds are there, in their form."""
    return all(
        t in values and (values[t].shape, values[t].dtype) == (dumped.shape, dumped.dtype)
        for t, dumped in alone.got.items()
    )


def digest(values: Results, alone: Part) -> bytes | None:
    """Return a hash over every result that the dump holds; None where one is missing or has another shape or type."""
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
