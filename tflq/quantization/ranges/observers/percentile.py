"""Ends that exclude a share of the values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tflq.quantization.params import Range
from tflq.quantization.ranges.observers.histogram import Histogram
from tflq.typing import Array


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
