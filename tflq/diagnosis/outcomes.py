"""A device's results of an operator, next to the dump's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.diagnosis.mistakes import Device
from tflq.engine.api.part import Part
from tflq.errors import TflqError
from tflq.typing import Array

#: Results by original tensor index.
Results: TypeAlias = "Mapping[int, Array]"


@dataclass(frozen=True, slots=True)
class Fault:
    """A hypothesis that raised an exception other than a refusal: its name, the exception's class and text."""

    name: str
    kind: str
    text: str


def results(device: Device, alone: Part, name: str = "", faults: dict[str, Fault] | None = None) -> Results:
    """Return a device's results for the tensors in the dump; nothing if it cannot run.

    Wrong constants may break guarantees of the kernel's own preparation. An exception other than a refusal is noted in
    `faults`, under the hypothesis's name.
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
    """Return whether all results of the dump are present, with their shape and type."""
    return all(
        t in values and (values[t].shape, values[t].dtype) == (dumped.shape, dumped.dtype)
        for t, dumped in alone.got.items()
    )


def digest(values: Results, alone: Part) -> bytes | None:
    """Return a hash of all results in the dump; None if one is missing or has another shape or type."""
    if not fits(values, alone):
        return None
    whole = blake2b(digest_size=16)
    for tensor in alone.got:
        whole.update(bits_of(values[tensor]))
    return whole.digest()


def bits_of(value: Array) -> bytes:
    """Return bytes that are equal for values that `difference` calls the same: NaN has one form, strings their text."""
    if value.dtype.hasobject:
        return repr(value.tolist()).encode()
    plain = np.ascontiguousarray(value)
    numbers = plain.view(f"f{plain.itemsize // 2}") if plain.dtype.kind == "c" else plain
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        numbers = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)
    return numbers.tobytes()


def score(values: Results, got: Results) -> tuple[int, int]:
    """Return the number of elements that agree bit by bit, and the number of all."""
    matching = 0
    for tensor, dumped in got.items():
        value = values.get(tensor)
        if value is not None and value.shape == dumped.shape and value.dtype == dumped.dtype:
            matching += dumped.size - int(np.count_nonzero(unequal(value, dumped)))
    return matching, sum(dumped.size for dumped in got.values())
