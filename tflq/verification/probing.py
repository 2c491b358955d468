"""Other inputs for one operator, that hypotheses about it may part on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.verification.localize import Alone

Array = NDArray[Any]

#: How many random inputs of each kind are tried.
_ROUNDS = 3


def probes(alone: Alone, seed: int = 0) -> Iterator[Alone]:
    """The operator on inputs of other values: all codes alike probable, small ones around the dump's, extremes.

    Operands whose values say something else than numbers to compute with (shapes, axes, indices) stay as they are.
    """
    rng = np.random.default_rng(seed)
    for _ in range(_ROUNDS):
        for make in (_uniform, _extreme, _shuffled):
            yield replace(alone, inputs={p: make(rng, v) if _is_data(v) else v for p, v in alone.inputs.items()})


def _is_data(value: Array) -> bool:
    return value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8, np.int16)


def _uniform(rng: np.random.Generator, value: Array) -> Array:
    if value.dtype.kind == "f":
        spread = np.nanstd(value.astype(np.float64)) or 1.0
        return np.asarray(rng.normal(0.0, spread, value.shape), value.dtype)
    limits = np.iinfo(value.dtype)
    made: Array = rng.integers(limits.min, limits.max, value.shape, value.dtype, endpoint=True)
    return made


def _extreme(rng: np.random.Generator, value: Array) -> Array:
    if value.dtype.kind == "f":
        return np.asarray(_uniform(rng, value) * value.dtype.type(16))
    limits = np.iinfo(value.dtype)
    ends = np.array([limits.min, limits.max], value.dtype)
    return np.asarray(rng.choice(ends, value.shape))


def _shuffled(rng: np.random.Generator, value: Array) -> Array:
    """The dump's own values elsewhere."""
    return np.asarray(rng.permutation(value.reshape(-1)).reshape(value.shape))
