"""Elements moved apart and given a border: interior and edge padding, where negative edges cut.

Source: LiteRT 2.3, stablehlo_pad.cc PadData; dilate.cc DilationRunner; stablehlo_reduce_window.cc DilateData,
PadCropData.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.kernels.kernel import Shape
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Where elements go: along each dimension, number i to low + i * step of `shape`."""

    shape: Shape  # of the output
    target: tuple[slice, ...]
    source: tuple[slice, ...]


def spread(shape: Shape, low: Shape, high: Shape, steps: Shape) -> Spread:
    """Return elements `steps` apart, `low` and `high` places before and behind them. Sizes may be negative."""
    sizes, target, source = [], [], []
    for size, before, behind, step in zip(shape, low, high, steps, strict=True):
        out = before + (size - 1) * step + 1 + behind if size else before + behind
        first = max(0, -(before // step))  # the first element at or behind place 0
        last = min(size, -(-(out - before) // step))  # the first one behind the end
        last = max(first, last)
        start = before + first * step
        sizes.append(out)
        source.append(slice(first, last))
        target.append(slice(start, start + (last - first - 1) * step + 1, step) if last > first else slice(0, 0))
    return Spread(tuple(sizes), tuple(target), tuple(source))


def move_apart(data: Spread, x: Array, value: Any) -> Array:
    """Return the elements at their places, with `value` everywhere else."""
    out = np.full(data.shape, value, x.dtype)
    out[data.target] = x[data.source]
    return out
