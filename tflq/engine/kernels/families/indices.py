"""Positions that a run brings along: what the source checks before it reads or writes there."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Shape
from tflq.typing import Array


def check_positions(name: str, positions: Array, size: int) -> None:
    """Require every position to lie in [0, size): otherwise the source stops the run."""
    if positions.size and (positions.min() < 0 or positions.max() >= size):
        wrong = positions[(positions < 0) | (positions >= size)].reshape(-1)[0]
        raise IndexError(f"{name} index {wrong} outside [0, {size})")


def coordinates(name: str, indices: Array, shape: Shape) -> tuple[Array, ...]:
    """Return the last dimension of `indices` as coordinates, one array each, checked against the sizes of `shape`."""
    parts = tuple(np.moveaxis(indices, -1, 0).astype(np.intp))
    for part, size in zip(parts, shape, strict=False):
        check_positions(name, part, size)
    return parts
