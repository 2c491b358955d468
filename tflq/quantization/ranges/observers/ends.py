"""Observers of ends: the extremes of all values, or the averaged extremes of each sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tflq.quantization.params import Range
from tflq.typing import Array


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
