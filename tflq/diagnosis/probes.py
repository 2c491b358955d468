"""Other inputs for one operator, on which hypotheses about it may differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.engine.api.part import Part
from tflq.typing import Array

#: Number of orders of the dump's own values that are tried.
_ORDERS = 4


def shuffle(alone: Part, seed: int = 0) -> Iterator[Part]:
    """Yield the operator on its inputs' own values in other orders."""
    rng = np.random.default_rng(seed)
    for _ in range(_ORDERS):
        yield replace(alone, inputs={p: _shuffle(rng, v) if _is_data(v) else v for p, v in alone.inputs.items()})


def probes(alone: Part, rounds: int, seed: int = 0) -> Iterator[Part]:
    """Yield the operator on other inputs: two kinds per round, uniformly distributed codes and extremes."""
    rng = np.random.default_rng(seed)
    for kind in range(2 * rounds):
        yield replace(alone, inputs={p: _other(rng, v, kind) if _is_data(v) else v for p, v in alone.inputs.items()})


def batched(alone: Part, outputs: int, seed: int = 0) -> Part | None:
    """Return the operator on a batch of random inputs with about this many results.

    Half of the inputs are uniformly distributed codes, half of them the dump's own values. The result is None if the
    operator does not take batches of 1.
    """
    data = {p: v for p, v in alone.inputs.items() if _is_data(v)}
    shapes = [v.shape for v in (*data.values(), *alone.got.values())]
    if not data or any(len(shape) < 2 or shape[0] != 1 for shape in shapes):
        return None
    rng = np.random.default_rng(seed)
    half = max(1, outputs // (2 * sum(v.size for v in alone.got.values()) or 1))
    batches = {
        p: np.concatenate([_other(rng, np.repeat(v, half, 0), 0), rng.choice(v.reshape(-1), (half, *v.shape[1:]))])
        for p, v in data.items()
    }
    got = {t: np.repeat(v, 2 * half, 0) for t, v in alone.got.items()}
    return replace(alone, inputs={**alone.inputs, **batches}, got=got)


def _is_data(value: Array) -> bool:
    """Return whether values are data: others (shapes, axes, indices) stay unchanged."""
    return value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8, np.int16)


def _shuffle(rng: np.random.Generator, value: Array) -> Array:
    return np.asarray(rng.permutation(value.reshape(-1)).reshape(value.shape))


def _other(rng: np.random.Generator, value: Array, kind: int) -> Array:
    spread = float(np.nanstd(value.astype(np.float64))) if value.dtype.kind == "f" and value.size else 1.0
    return random_values(rng, value.dtype, value.shape, kind, spread or 1.0)


def random_values(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], kind: int, spread: float = 1.0
) -> Array:
    """Return uniformly distributed codes, or for odd kinds the lowest and highest only; reals of that deviation."""
    if dtype.kind == "f":
        return np.asarray(rng.normal(0.0, spread * (16 if kind % 2 else 1), shape), dtype)
    if dtype.kind not in "iu":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    limits = np.iinfo(dtype)
    if kind % 2:
        return np.asarray(rng.choice(np.array([limits.min, limits.max], dtype), shape))
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))
