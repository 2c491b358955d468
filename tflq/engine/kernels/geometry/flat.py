"""Places of elements in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.engine.kernels.kernel import Shape
from tflq.typing import Array


def flat_places(extents: Shape, steps: Sequence[int]) -> Array:
    """Return the sums of steps at all places of a grid, in order, int64, of length prod(extents)."""
    sums = np.zeros(1, np.int64)
    for extent, step in zip(extents, steps, strict=True):
        sums = (sums[:, None] + np.arange(extent, dtype=np.int64) * step).reshape(-1)
    return sums


def broadcast_steps(shape: Shape, out: Shape) -> tuple[int, ...]:
    """Return the steps along the axes of `out` through a contiguous array of `shape` that is broadcast to it."""
    steps, step = [0] * len(out), 1
    for axis in range(1, len(shape) + 1):
        steps[-axis] = step if shape[-axis] > 1 else 0
        step *= shape[-axis]
    return tuple(steps)
