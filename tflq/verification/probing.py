"""Other inputs for one operator, that hypotheses about it may part on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.verification.localize import Alone

Array = NDArray[Any]


def probes(alone: Alone, seed: int = 0, rounds: int = 3) -> Iterator[Alone]:
    """The operator on inputs of other values: three kinds a round, all codes alike probable, extremes, the dump's own.

    Operands whose values say something else than numbers to compute with (shapes, axes, indices) stay as they are.
    """
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for kind in range(3):
            yield replace(alone, inputs={p: _other(rng, v, kind) for p, v in alone.inputs.items()})


def _other(rng: np.random.Generator, value: Array, kind: int) -> Array:
    if not (value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8, np.int16)):
        return value
    if kind == 2:
        return np.asarray(rng.permutation(value.reshape(-1)).reshape(value.shape))
    spread = float(np.nanstd(value.astype(np.float64))) if value.dtype.kind == "f" and value.size else 1.0
    return random_values(rng, value.dtype, value.shape, kind, spread or 1.0)


def random_values(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], kind: int, spread: float = 1.0
) -> Array:  # fmt: skip
    """Codes that are all alike probable, or for odd kinds the lowest and highest only; reals of that deviation."""
    if dtype.kind == "f":
        return np.asarray(rng.normal(0.0, spread * (16 if kind % 2 else 1), shape), dtype)
    if dtype.kind not in "iu":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    limits = np.iinfo(dtype)
    if kind % 2:
        return np.asarray(rng.choice(np.array([limits.min, limits.max], dtype), shape))
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))
