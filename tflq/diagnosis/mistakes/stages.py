"""Output stages that devices use instead of the runtime's: points of the grammar, and narrower accumulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.engine.numerics.divisions import Ints
from tflq.engine.numerics.requantizer import Requantizer
from tflq.engine.numerics.requantizer_stage import GrammarStage
from tflq.engine.numerics.stages import OutputStage, Reals, StageOf
from tflq.typing import Array


def fix(last: str, first: str = "none", mantissa: int = 31, *, cut: bool = False) -> StageOf:
    """Return stages in fixed point: a mantissa of `mantissa` bits, then one rounding or two.

    Accumulators that are shifted to the left saturate in 32 bits.
    """
    shortened = "cut off" if cut else "to nearest"
    point = Requantizer("given", "fixed point", mantissa, shortened, first, last, left="saturates", accumulator=_ANY)
    return at_point(point)


def real(last: str, product: str = "float64") -> StageOf:
    """Return stages that multiply in a float type and round once."""
    return at_point(Requantizer(product=product, last=last, accumulator=_ANY))


def at_point(point: Requantizer) -> StageOf:
    """Return the function that makes stages of a point of the grammar."""

    def make(multipliers: ArrayLike) -> OutputStage:
        return GrammarStage.of(point, multipliers)

    return make


#: Accumulators are as wide as the kernel makes them.
_ANY = "64 bits"


def _per_channel(values: Array, channels: int) -> Array:
    """Return `values`, of length 1, C or repeated, as one per channel or as one for all."""
    return values[:channels] if len(values) >= channels else values[:1]


@dataclass(frozen=True, slots=True, eq=False)
class NarrowAccumulator:
    """Another stage whose accumulators, bias included, have only `bits` bits: they wrap or saturate."""

    inner: OutputStage
    bits: int
    wraps: bool

    @property
    def real(self) -> Reals:
        """The real multipliers of the stage that follows."""
        return self.inner.real

    def __call__(self, accumulator: Array) -> NDArray[np.int32]:
        """Limit the accumulators, then scale them; see OutputStage.__call__."""
        return self.inner(self._limit(accumulator.astype(np.int64)))

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Limit the accumulators with their bias, then scale and clamp; see OutputStage.narrow."""
        total = accumulator.astype(np.int64) + _per_channel(bias, accumulator.shape[1]).astype(np.int64)
        none = np.zeros(accumulator.shape[1], np.int32)
        self.inner.narrow(self._limit(total), out, none, zero_point, low, high)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Limit the accumulators, then scale and clamp; see OutputStage.narrow_flat."""
        self.inner.narrow_flat(self._limit(accumulator.astype(np.int64)), out, zero_point, low, high)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the call; see OutputStage.bind_flat."""
        return partial(self.narrow_flat, accumulator, out, zero_point, low, high)

    def _limit(self, total: Ints) -> Ints:
        half = np.int64(1) << np.int64(self.bits - 1)
        if self.wraps:
            return ((total + half) & (2 * half - 1)) - half
        return np.clip(total, -half, half - 1)
