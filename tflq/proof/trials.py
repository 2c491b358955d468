"""Inputs that may distinguish two profiles if nothing decides: random, directed, extreme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.errors import TflqError
from tflq.proof.operator import Bound, compare
from tflq.proof.verdicts import Witness
from tflq.typing import Array

#: Limits on fed elements in all, and on inputs.
_MOST_ELEMENTS, _MOST_ROUNDS = 1 << 22, 1000
_KINDS = 5


def search(first: Bound, second: Bound, seed: int = 0, rounds: int = _MOST_ROUNDS) -> Witness | None:
    """Return the first of several inputs on which the two differ; inputs that one of them refuses are skipped."""
    for inputs in trials(first, seed, rounds):
        try:
            witness = compare(first, second, inputs)
        except TflqError:
            continue
        if witness is not None:
            return witness
    return None


def trials(bound: Bound, seed: int = 0, rounds: int = _MOST_ROUNDS) -> Iterator[dict[int, Array]]:
    """Yield inputs of an operator: uniform values, extremes, near the zero point, runs, one different element."""
    rng = np.random.default_rng(seed)
    size = max(1, sum(int(np.prod(bound.shape(t))) for t in bound.inputs))
    for number in range(min(rounds, max(4, _MOST_ELEMENTS // size))):
        yield {t: _nearest(bound, t, _values(rng, bound, t, number % _KINDS)) for t in bound.inputs}


def _nearest(bound: Bound, tensor: int, values: Array) -> Array:
    """Return each value, or the next one that the tensor can hold."""
    if tensor not in bound.held:
        return values
    known = np.sort(bound.held[tensor].values)
    return known[np.minimum(np.searchsorted(known, values), len(known) - 1)]


def _values(rng: np.random.Generator, bound: Bound, tensor: int, kind: int) -> Array:
    shape, dtype = bound.shape(tensor), bound.dtype(tensor)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), np.bool_)
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, (1, 8, 0.05, 100, 3)[kind], shape), dtype)
    if dtype.kind not in "iu":
        return np.zeros(shape, dtype)
    info = np.iinfo(dtype)
    low, high = (int(info.min), int(info.max)) if dtype.itemsize < 4 else (-8, 8)
    zero = min(max(int(bound.plan.operands[tensor].zero_point), low), high)
    if kind == 0:
        return np.asarray(rng.integers(low, high + 1, shape), dtype)
    if kind == 1:
        return np.asarray(rng.choice(np.array([low, zero, high]), shape), dtype)
    if kind == 2:
        return np.clip(zero + rng.integers(-12, 13, shape), low, high).astype(dtype)
    if kind == 3:
        return np.full(shape, rng.integers(low, high + 1)).astype(dtype)
    return np.asarray(np.clip(rng.integers(low, high + 1) + rng.integers(-3, 4, shape), low, high), dtype)
