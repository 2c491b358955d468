"""A histogram on bins whose width is a power of two and whose edges are multiples of it.

Bins of two such histograms always nest, so widening and merging move no value across an edge, and the final state
depends on the values alone, not on their order or grouping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.errors import InputError
from tflq.quantization.params import Range
from tflq.typing import Array, Reals

#: Bits between a histogram's largest magnitude and its narrowest bins, for values that hardly differ.
_FINEST = 40


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Bin i counts the values in [(first + i) * 2^exponent, (first + i + 1) * 2^exponent) and holds their sum.

    If `margin` is None, the bins widen until they hold everything. Otherwise they cover the first batch's range,
    widened on both sides by `margin` of its width, and stay fixed: values outside count as if they lay at the ends.

    With `relative`, each value counts 1 / (mean square of its sample). Square errors then add up to noise-to-signal
    ratios of samples, and large samples do not outweigh small ones. These counts are not integers.
    """

    bins: int = 4096
    margin: float | None = None
    relative: bool = False
    exponent: int = 0
    first: int = 0
    counts: Reals = field(default_factory=lambda: np.zeros(0))
    sums: Reals = field(default_factory=lambda: np.zeros(0))
    low: float = math.inf
    high: float = -math.inf

    @staticmethod
    def within(span: Range, bins: int = 4096) -> Histogram:
        """Return an empty histogram over a range; values outside count as if they lay at its ends."""
        exponent, first = _grid(float(span.low[0]), float(span.high[0]), bins)
        return Histogram(bins, 0.0, False, exponent, first, np.zeros(bins), np.zeros(bins))

    @property
    def range(self) -> Range:
        """The range from the least to the greatest value seen, as far as the bins reach."""
        if self.low > self.high:
            return Range.of(0.0, 0.0)
        low, high = self._edges
        return Range.of(max(self.low, low), min(self.high, high))

    @property
    def is_fixed_by_first_batch(self) -> bool:
        """True if the next batch decides the bins for good, so that parts of the samples do not get the same ones."""
        return self.margin is not None and not len(self.counts)

    @property
    def _edges(self) -> tuple[float, float]:
        """The start of the first bin and the end of the last one."""
        return math.ldexp(self.first, self.exponent), math.ldexp(self.first + self.bins, self.exponent)

    def update(self, samples: Array) -> Histogram:
        """Return the histogram with `samples` counted."""
        low, high = float(samples.min()), float(samples.max())
        return self._holding(low, high)._counting(samples)

    def merge(self, other: Histogram) -> Histogram:
        """Return both counted together; histograms with fixed bins must have the same bins."""
        if not len(other.counts):
            return self
        mine = self._holding(other.low, other.high) if len(self.counts) else other._empty()
        if mine.margin is not None and (mine.exponent, mine.first) != (other.exponent, other.first):
            raise InputError("histograms with fixed bins must have the same bins to be merged")
        counts, sums = other._place(mine.exponent, mine.first)
        return replace(
            mine,
            counts=mine.counts + counts,
            sums=mine.sums + sums,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
        )

    def quantile(self, share: float) -> float:
        """Return the value below which `share` of all values lie, if they are evenly spread within each bin."""
        total = np.cumsum(self.counts)
        rank = share * total[-1]
        i = int(np.searchsorted(total, rank))
        before = total[i] - self.counts[i]
        inside = (rank - before) / self.counts[i] if self.counts[i] else 0.0
        return float(np.clip(math.ldexp(self.first + i + inside, self.exponent), self.low, self.high))

    def _holding(self, low: float, high: float) -> Histogram:
        """Return the histogram with its bins widened to hold values from `low` to `high`."""
        if not len(self.counts):
            extra = (self.margin or 0.0) * (high - low)
            exponent, first = _grid(low - extra, high + extra, self.bins)
            empty = np.zeros(self.bins)
            return replace(self, exponent=exponent, first=first, counts=empty, sums=empty, low=low, high=high)
        low, high = min(self.low, low), max(self.high, high)
        if self.margin is not None:
            return replace(self, low=low, high=high)
        exponent, first = _grid(low, high, self.bins)
        counts, sums = self._place(exponent, first)
        return replace(self, exponent=exponent, first=first, counts=counts, sums=sums, low=low, high=high)

    def _place(self, exponent: int, first: int) -> tuple[Reals, Reals]:
        """Return counts and sums in bins as wide or wider, of a window that holds everything counted."""
        if (exponent, first) == (self.exponent, self.first):
            return self.counts, self.sums
        index = ((np.arange(self.bins) + self.first) >> (exponent - self.exponent)) - first
        index = _clip(index, self.bins)  # only empty bins lie outside the window
        return _gather(index, self.counts, self.bins), _gather(index, self.sums, self.bins)

    def _empty(self) -> Histogram:
        return replace(self, counts=np.zeros_like(self.counts), sums=np.zeros_like(self.sums))

    def _counting(self, samples: Array) -> Histogram:
        low, high = self._edges
        counts, sums = np.zeros(self.bins), np.zeros(self.bins)
        values = np.ascontiguousarray(samples.reshape(len(samples), -1))
        weights = _relative_weights(values, low, high) if self.relative else np.ones(len(values))
        _count_into(values, weights, low, high, math.ldexp(1.0, -self.exponent), self.first, counts, sums)
        return replace(self, counts=self.counts + counts, sums=self.sums + sums)


@compiled
def _count_into(
    values: Array, weights: Reals, low: float, high: float, scale: float, first: Int, counts: Reals, sums: Reals
) -> None:
    """Add each value of row r, clipped to low..high, to its bin: weights[r] to counts, value * weights[r] to sums.

    The caller guarantees: `values` is [R, N] and finite, `weights` is [R], and `counts` and `sums` have the same
    length.
    """
    last = len(counts) - 1
    for r in range(values.shape[0]):
        weight = weights[r]
        for k in range(values.shape[1]):
            value = min(max(np.float64(values[r, k]), low), high)
            i = min(max(np.int64(math.floor(value * scale)) - first, 0), last)
            counts[i] += weight
            sums[i] += value * weight


def _relative_weights(samples: Array, low: float, high: float) -> Reals:
    """Return 1 / (mean square) of each row of values clipped to low..high, [N]; 0 for rows that are all zero."""
    inside = np.clip(samples, low, high)
    power = np.array([np.square(row, dtype=np.float64).mean() for row in inside])
    weights: Reals = np.divide(1.0, power, out=np.zeros_like(power), where=power > 0)
    return weights


def _grid(low: float, high: float, bins: int) -> tuple[int, int]:
    """Return the least exponent, and the first bin, of a window of `bins` bins that holds [low, high]."""
    magnitude = max(abs(low), abs(high), 2.0**-149)
    exponent = math.frexp(magnitude)[1] - _FINEST
    width = high - low
    if width > 0:
        exponent = max(exponent, math.frexp(width / bins)[1] - 1)
    while math.floor(math.ldexp(high, -exponent)) - math.floor(math.ldexp(low, -exponent)) >= bins:
        exponent += 1
    return exponent, math.floor(math.ldexp(low, -exponent))


def _clip(index: Array, bins: int) -> Array:
    """Return bin numbers, clipped to the window."""
    inside: Array = np.clip(index, 0, bins - 1)
    return inside


def _gather(index: Array, weights: Array, bins: int) -> Reals:
    return np.bincount(index, weights, bins).astype(np.float64)
