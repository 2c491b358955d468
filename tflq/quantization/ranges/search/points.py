"""The data that a range is searched for: weighted points, one row per channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range
from tflq.quantization.ranges.observers import Histogram
from tflq.typing import Array

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """`values` [C, N] float64; `counts` [C, N], or [1, 1] if all have the same weight."""

    values: Reals
    counts: Reals

    @staticmethod
    def of_values(values: Array, axis: int | None = None) -> Points:
        """Return each element once: the whole tensor as one row, or one row per index along `axis`."""
        return Points(rows_of(values, axis).astype(np.float64), np.ones((1, 1)))

    @staticmethod
    def of_histogram(histogram: Histogram) -> Points:
        """Return the mean value of each occupied bin, weighted by its count."""
        occupied = histogram.counts > 0
        counts = histogram.counts[occupied]
        return Points((histogram.sums[occupied] / counts)[None], counts[None])

    @property
    def range(self) -> Range:
        """The range from the least to the greatest value of each row; 0 to 0 if there are none."""
        if not self.values.shape[1]:
            return Range(np.zeros(len(self.values)), np.zeros(len(self.values)))
        return Range(self.values.min(axis=1), self.values.max(axis=1))

    def binned(self, bins: int = 2048) -> Points:
        """Return each row's values gathered in equal bins over its own range, at most one per value.

        The result holds mean value and count of every bin, ascending. Bins without values have their centre as value
        and count 0.
        """
        rows, whole = len(self.values), self.range
        bins = max(1, min(bins, self.values.shape[1]))
        width = np.maximum((whole.high - whole.low) / bins, np.finfo(np.float64).tiny)[:, None]
        index = np.minimum(((self.values - whole.low[:, None]) / width).astype(np.int64), bins - 1)
        flat = (index + bins * np.arange(rows)[:, None]).ravel()
        weights = np.broadcast_to(self.counts, self.values.shape)
        counts = np.bincount(flat, weights.ravel(), rows * bins).reshape(rows, bins).astype(np.float64)
        sums = np.bincount(flat, (weights * self.values).ravel(), rows * bins).reshape(rows, bins)
        centres = whole.low[:, None] + (np.arange(bins) + 0.5) * width
        return Points(np.divide(sums, counts, out=centres, where=counts > 0), counts)

    def joined(self, other: Points) -> Points:
        """Return the points of both, row by row."""
        counts = [np.broadcast_to(points.counts, points.values.shape) for points in (self, other)]
        return Points(np.concatenate([self.values, other.values], axis=1), np.concatenate(counts, axis=1))


def rows_of(values: Array, axis: int | None) -> Array:
    """Return a tensor as one row, or with one row per index along `axis`."""
    return values.reshape(1, -1) if axis is None else np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)


def from_rows(rows: Array, shape: tuple[int, ...], axis: int | None) -> Array:
    """Return the tensor of that shape, the inverse of `rows_of`."""
    if axis is None:
        return rows.reshape(shape)
    return np.moveaxis(rows.reshape(shape[axis], *shape[:axis], *shape[axis + 1 :]), 0, axis)
