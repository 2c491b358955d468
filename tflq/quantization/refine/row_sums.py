"""Inputs that the float model feeds to each operator with weights: the sum of its rows, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range, extent
from tflq.quantization.refine.products import MatrixProduct
from tflq.typing import Array

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RowSums:
    """The sum of the rows that an operator sees, [N, G, K]: an observer of its data."""

    product: MatrixProduct
    sums: Reals = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def update(self, samples: Array) -> RowSums:
        """Return these sums and those of `samples`."""
        shape = samples.shape[1:] if self.product.steps is None else (-1, *samples.shape[-3:])
        sums = np.array([self.product.row_sum(sample.reshape(shape)) for sample in samples])
        return self.merge(replace(self, sums=sums))

    def merge(self, other: RowSums) -> RowSums:
        """Return the sums of both, this one's samples first."""
        return replace(self, sums=np.concatenate([self.sums, other.sums])) if self.sums.size else other

    def total(self, numbers: Sequence[int]) -> Reals:
        """Return the sum over these samples, numbered as they were seen, [G, K]."""
        total: Reals = self.sums[list(numbers)].sum(axis=0)
        return total

    @property
    def range(self) -> Range:
        """The extremes of the sums."""
        return extent(self.sums)
