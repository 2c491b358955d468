"""The first samples, unchanged, as many as memory allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tflq.quantization.params import Range, extent, hull
from tflq.typing import Array


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
