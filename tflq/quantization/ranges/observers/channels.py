"""Mean, variance and extremes of each channel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range

Reals = NDArray[np.float64]


def _none() -> Reals:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Moments over all but the last axis: `squares` sums squared distances from the mean; all arrays are [C].

    Merged without cancellation. Source: Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for
    computing sample variances".
    """

    count: int = 0
    mean: Reals = field(default_factory=_none)
    squares: Reals = field(default_factory=_none)
    low: Reals = field(default_factory=_none)
    high: Reals = field(default_factory=_none)

    def update(self, samples: NDArray[Any]) -> Channels:
        """Return the moments with `samples` counted."""
        rows = samples.reshape(-1, samples.shape[-1]).astype(np.float64)
        mean = rows.mean(axis=0)
        squares = np.square(rows - mean).sum(axis=0)
        return self.merge(Channels(len(rows), mean, squares, rows.min(axis=0), rows.max(axis=0)))

    def merge(self, other: Channels) -> Channels:
        """Both counted together."""
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        apart = other.mean - self.mean
        return replace(
            self,
            count=count,
            mean=self.mean + apart * (other.count / count),
            squares=self.squares + other.squares + np.square(apart) * (self.count * other.count / count),
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    @property
    def variance(self) -> Reals:
        """The variance of each channel, as of a whole population."""
        return self.squares / max(1, self.count)

    @property
    def range(self) -> Range:
        """The extremes of each channel."""
        return Range(self.low, self.high) if self.count else Range.of(0.0, 0.0)
