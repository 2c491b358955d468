"""Extremes of each channel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range
from tflq.typing import Array

Reals = NDArray[np.float64]


def _none() -> Reals:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """The extremes over all but the last axis: both are [C]."""

    low: Reals = field(default_factory=_none)
    high: Reals = field(default_factory=_none)

    def update(self, samples: Array) -> Channels:
        """Return the extremes widened by the samples."""
        rows = samples.reshape(-1, samples.shape[-1])
        return self.merge(Channels(rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)))

    def merge(self, other: Channels) -> Channels:
        """Return the hull of both."""
        if not self.low.size or not other.low.size:
            return self if self.low.size else other
        return Channels(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def range(self) -> Range:
        """The extremes of each channel."""
        return Range(self.low, self.high) if self.low.size else Range.of(0.0, 0.0)
