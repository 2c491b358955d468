"""A uniform random choice of values, as many as memory allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range
from tflq.typing import Array


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
