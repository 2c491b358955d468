"""A point of the grammar of requantizers as an output stage that kernels can use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tflq.engine.numerics.multipliers_of_scales import Scales
from tflq.engine.numerics.requantizer import Requantizer
from tflq.engine.numerics.stages import Ints32, Reals, as_reals, type_range
from tflq.typing import Array

#: Limits of results that no result reaches: they wrap instead.
_FAR = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class GrammarStage:
    """An OutputStage that computes as a point, with the constants of its multipliers, length 1 or C."""

    real: Reals
    point: Requantizer
    factors: tuple[Array, ...]

    @classmethod
    def of(cls, point: Requantizer, real: ArrayLike, scales: Scales | None = None) -> GrammarStage:
        """Return the stage for real multipliers; `scales` are what they were computed from, if that is known."""
        values = as_reals(real)
        factors = tuple(map(np.atleast_1d, point.factors(values, scales)))
        return cls(values, point, factors)

    def _codes(self, total: Array, zero_point: int, low: int, high: int, dtype: DTypeLike = np.int8) -> Array:
        channels = total.shape[-1]
        factors = tuple(f[:channels] if len(f) >= channels else f[:1] for f in self.factors)
        return self.point.codes(total, factors, zero_point, low, high, type_range(dtype))

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale accumulators; see OutputStage.__call__."""
        total = np.atleast_1d(accumulator).astype(np.int64)
        return self._codes(total, 0, -_FAR, _FAR).astype(np.int32).reshape(accumulator.shape)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        channels = accumulator.shape[1]
        added = bias[:channels] if len(bias) >= channels else bias[:1]
        total = accumulator.astype(np.int64) + added.astype(np.int64)
        out[...] = self._codes(total, zero_point, low, high, out.dtype).astype(out.dtype)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat."""
        out[...] = self._codes(accumulator.astype(np.int64), zero_point, low, high, out.dtype).astype(out.dtype)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the call; see OutputStage.bind_flat."""
        return partial(self.narrow_flat, accumulator, out, zero_point, low, high)
