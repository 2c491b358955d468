"""Observers of a tensor's values in a stream of samples: frozen values, merged exactly, of bounded size.

Extremes of each channel.

Observers of ends: the extremes of all values, or the averaged extremes of each sample.

The first samples, unchanged, as many as memory allows.

The protocol of observers.

Ends that exclude a share of the values.

A uniform random choice of values, as many as memory allows.

The observer for each of the recipe's words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range, extent, hull
from tflq.quantization.ranges.histogram import Histogram
from tflq.quantization.recipe import Watch
from tflq.typing import Array, Reals

__all__ = ["ChannelEnds", "FirstSamples", "Histogram", "MinMax", "MovingAverage", "Observer", "Percentile", "Reservoir"]


def _none() -> Reals:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class ChannelEnds:
    """The extremes over all but the last axis: both are [C]."""

    low: Reals = field(default_factory=_none)
    high: Reals = field(default_factory=_none)

    def update(self, samples: Array) -> ChannelEnds:
        """Return the extremes widened by the samples."""
        rows = samples.reshape(-1, samples.shape[-1])
        return self.merge(ChannelEnds(rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)))

    def merge(self, other: ChannelEnds) -> ChannelEnds:
        """Return the hull of both."""
        if not self.low.size or not other.low.size:
            return self if self.low.size else other
        return ChannelEnds(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def range(self) -> Range:
        """The extremes of each channel."""
        return Range(self.low, self.high) if self.low.size else Range.of(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class MinMax:
    """The least and the greatest of all values."""

    low: float = math.inf
    high: float = -math.inf

    def update(self, samples: Array) -> MinMax:
        """Return the extremes widened by the samples."""
        return self.merge(MinMax(float(samples.min()), float(samples.max())))

    def merge(self, other: MinMax) -> MinMax:
        """Return the hull of both."""
        return MinMax(min(self.low, other.low), max(self.high, other.high))

    @property
    def range(self) -> Range:
        """The range from the least to the greatest value."""
        return Range.of(self.low, self.high) if self.low <= self.high else Range.of(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class MovingAverage:
    """The average of each sample's least and greatest value; older samples weigh less by `decay` each.

    `low` and `high` are weighted sums, `weight` the sum of weights, so the first samples need no special case. After n
    samples x_k, the end is sum(decay^(n-k) x_k) / sum(decay^(n-k)). With decay 1 it is the plain mean.

    Source: Jacob et al. 2018 (arXiv:1712.05877), section 3.1; the correction of the start is Adam's (arXiv:1412.6980).
    """

    decay: float = 1.0
    low: float = 0.0
    high: float = 0.0
    weight: float = 0.0
    count: int = 0

    def update(self, samples: Array) -> MovingAverage:
        """Return the averages after `samples`, the last of which is the newest."""
        rows = samples.reshape(len(samples), -1)
        ages = self.decay ** np.arange(len(rows) - 1, -1, -1, dtype=np.float64)
        low, high = float(ages @ rows.min(axis=1)), float(ages @ rows.max(axis=1))
        return self.merge(replace(self, low=low, high=high, weight=float(ages.sum()), count=len(rows)))

    def merge(self, other: MovingAverage) -> MovingAverage:
        """Return the averages of both; the other's samples are the newer ones."""
        aged = self.decay**other.count
        return replace(
            self,
            low=self.low * aged + other.low,
            high=self.high * aged + other.high,
            weight=self.weight * aged + other.weight,
            count=self.count + other.count,
        )

    @property
    def range(self) -> Range:
        """The range between the averaged ends."""
        if not self.weight:
            return Range.of(0.0, 0.0)
        return Range.of(self.low / self.weight, self.high / self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class FirstSamples:
    """Whole samples, stacked along axis 0, until the next would exceed `limit` bytes; at least one."""

    limit: int = 2 << 20
    samples: Array = field(default_factory=lambda: np.zeros(0, np.float32))

    def update(self, samples: Array) -> FirstSamples:
        """Return these samples and the first of `samples` that still fit."""
        fit = (self.limit - self.samples.nbytes) // max(1, samples[:1].nbytes)
        fit = max(fit, 0 if self.samples.size else 1)
        if fit == 0 or (self.samples.size and self.samples.shape[1:] != samples.shape[1:]):
            return self
        taken = samples[:fit].astype(np.float32)
        return replace(self, samples=np.concatenate([self.samples, taken]) if self.samples.size else taken)

    def merge(self, other: FirstSamples) -> FirstSamples:
        """Return the samples of both, this one's first."""
        return self.update(other.samples) if other.samples.size else self

    @property
    def range(self) -> Range:
        """The extremes of the kept samples."""
        return hull([extent(self.samples)])


Self = TypeVar("Self", bound="Observer")


class Observer(Protocol):
    """A frozen value of arrays and numbers; its fields are its whole state."""

    def update(self: Self, samples: Array) -> Self:
        """Return the state after `samples`: finite floats, one sample per index of axis 0, at least one element."""
        ...

    def merge(self: Self, other: Self) -> Self:
        """Return the state after this one's samples and then the other's; both began with the same settings."""
        ...

    @property
    def range(self) -> Range:
        """The proposed range: one row (C = 1), or one per channel. It is 0 to 0 before the first sample."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Percentile:
    """The quantiles with the share `outside` of all values beyond either end, from a histogram of all values.

    Source: Wu et al. 2020 (arXiv:2004.09602).
    """

    outside: float = 1e-4
    histogram: Histogram = field(default_factory=Histogram)

    def update(self, samples: Array) -> Percentile:
        """Return the percentile after `samples`."""
        return replace(self, histogram=self.histogram.update(samples))

    def merge(self, other: Percentile) -> Percentile:
        """Return the percentile of both counted together."""
        return replace(self, histogram=self.histogram.merge(other.histogram))

    @property
    def range(self) -> Range:
        """The range between the two quantiles."""
        if not len(self.histogram.counts):
            return self.histogram.range
        return Range.of(self.histogram.quantile(self.outside), self.histogram.quantile(1 - self.outside))


@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """At most `capacity` of the values seen: those with the smallest random keys.

    Keys depend on `seed` and on the number of earlier values, so the choice is reproducible. Parts to be merged need
    different seeds. Source: Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches".
    """

    capacity: int = 1 << 14
    seed: int = 0
    seen: int = 0
    keys: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    values: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    def update(self, samples: Array) -> Reservoir:
        """Return a choice from the values seen before and those of `samples`."""
        values = samples.ravel().astype(np.float32)
        keys = np.random.default_rng((self.seed, self.seen)).random(values.size)
        if len(self.keys) == self.capacity:  # most are already beyond the largest key
            near = keys < self.keys.max()
            keys, values = keys[near], values[near]
        return replace(self._smallest(keys, values), seen=self.seen + samples.size)

    def merge(self, other: Reservoir) -> Reservoir:
        """Return a choice from the values of both."""
        return replace(self._smallest(other.keys, other.values), seen=self.seen + other.seen)

    @property
    def range(self) -> Range:
        """The extremes of the kept values."""
        if not self.values.size:
            return Range.of(0.0, 0.0)
        return Range.of(self.values.min(), self.values.max())

    def _smallest(self, keys: NDArray[np.float64], values: NDArray[np.float32]) -> Reservoir:
        keys, values = np.concatenate([self.keys, keys]), np.concatenate([self.values, values])
        if len(keys) > self.capacity:
            chosen = np.argpartition(keys, self.capacity - 1)[: self.capacity]
            keys, values = keys[chosen], values[chosen]
        return replace(self, keys=keys, values=values)


#: A new observer of each kind.
OBSERVERS: dict[Watch, Observer] = {
    Watch.MIN_MAX: MinMax(),
    Watch.MOVING_AVERAGE: MovingAverage(),
    Watch.PERCENTILE: Percentile(),
    Watch.HISTOGRAM: Histogram(),
    Watch.RELATIVE: Histogram(bins=1 << 14, relative=True),
    Watch.FIRST_BATCH: Histogram(margin=0.25),
    Watch.VALUES: Reservoir(),
}
