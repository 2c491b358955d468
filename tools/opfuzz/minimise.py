"""Shrink a differing case to its simplest form that still differs in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from opfuzz.case import Array, Case, fed
from opfuzz.compare import Outcome, judge
from opfuzz.one_operator import T
from opfuzz.remote import Remote

ATTEMPTS = 400


def minimised(case: Case, outcome: Outcome, live: Remote) -> Case:
    """Return the simplest form that was found within a bounded number of attempts."""
    left = ATTEMPTS
    progress = True
    while progress:
        progress = False
        for smaller in simpler(case):
            left -= 1
            if left < 0:
                return case
            if _differs_alike(smaller, outcome, live):
                case, progress = smaller, True
                break
    return case


def _differs_alike(case: Case, outcome: Outcome, live: Remote) -> bool:
    try:
        return judge(case, live).verdict == outcome.verdict
    except (ValueError, IndexError, TypeError, OverflowError):  # no model can be built from it
        return False


def simpler(case: Case) -> Iterator[Case]:
    """Yield simpler forms of the case, the largest steps first."""
    if len(case.samples) > 1:
        for sample in case.samples:
            yield replace(case, samples=(sample,))
    yield from _smaller_dimensions(case)
    yield from _plainer_options(case)
    yield from _plainer_quantization(case)
    yield from _plainer_values(case)


def _smaller_dimensions(case: Case) -> Iterator[Case]:
    """Cut all dimensions of one size down together: broadcasting and channels stay consistent."""
    sizes = {n for t in _tensors(case) for n in t.shape if n > 1}
    for size in sorted(sizes, reverse=True):
        for smaller in sorted({1, size // 2, size - 1} - {0}):
            yield _resized(case, size, smaller)


def _resized(case: Case, size: int, smaller: int) -> Case:
    def shape(old: Any) -> tuple[int, ...]:
        return tuple(smaller if n == size else n for n in old)

    def cut(value: Array, old: Any) -> Array:
        return np.asarray(value)[tuple(slice(0, n) for n in shape(old))] if np.ndim(value) == len(old) else value

    def tensor(t: T) -> T:
        value = None if t.value is None else _renumbered(cut(t.value, t.shape), t.type, size, smaller)
        scale, zero = t.scale, t.zero_point
        if np.ndim(scale) == 1 and len(scale) == size:
            scale, zero = scale[:smaller], zero[:smaller] if np.ndim(zero) else zero
        return replace(t, shape=shape(t.shape), value=value, scale=scale, zero_point=zero)

    operands = fed(case.inputs)
    samples = tuple(
        tuple(_renumbered(cut(v, t.shape), t.type, size, smaller) for v, t in zip(sample, operands, strict=True))
        for sample in case.samples
    )
    inputs = tuple(None if t is None else tensor(t) for t in case.inputs)
    return replace(case, inputs=inputs, outputs=tuple(map(tensor, case.outputs)), samples=samples)


def _renumbered(value: Array, type_: str, size: int, smaller: int) -> Array:
    """Return a list of sizes with the dimension replaced."""
    if type_ not in ("int32", "int64") or value.ndim > 1 or value.size > 6:
        return value
    return np.where(value == size, value.dtype.type(smaller), value)


def _plainer_options(case: Case) -> Iterator[Case]:
    if case.options is None:
        return
    name, fields = case.options
    for field, value in fields.items():
        plain: Any = 1 if any(word in field for word in ("stride", "factor", "multiplier", "filter")) else 0
        if isinstance(value, (int, float)) and value != plain:
            yield replace(case, options=(name, {**fields, field: plain}))


def _plainer_quantization(case: Case) -> Iterator[Case]:
    tensors = _tensors(case)
    for old in tensors:
        if old.scale is None or np.ndim(old.scale):
            continue
        if old.zero_point != 0:
            yield _swapped(case, old, replace(old, zero_point=0))
        if old.scale != 1.0:
            yield _swapped(case, old, replace(old, scale=1.0))


def _swapped(case: Case, old: T, new: T) -> Case:
    inputs = tuple(new if t is old else t for t in case.inputs)
    return replace(case, inputs=inputs, outputs=tuple(new if t is old else t for t in case.outputs))


def _plainer_values(case: Case) -> Iterator[Case]:
    """Yield inputs that are all zero, or zero in one half."""
    for s, sample in enumerate(case.samples):
        for i, value in enumerate(sample):
            if value.dtype == object or not value.any():
                continue
            flat = value.reshape(-1)
            for begin, end in ((0, flat.size), (0, flat.size // 2), (flat.size // 2, flat.size)):
                if not flat[begin:end].any():
                    continue
                plain = flat.copy()
                plain[begin:end] = 0
                new = (*sample[:i], plain.reshape(value.shape), *sample[i + 1 :])
                yield replace(case, samples=(*case.samples[:s], new, *case.samples[s + 1 :]))


def _tensors(case: Case) -> list[T]:
    return [t for t in (*case.inputs, *case.outputs) if t is not None]
