"""An output stage of two parts: vector code scales whole blocks of channels, a scalar loop the channels left over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tflq.engine.numerics.stages import AS_INT32, Ints32, OutputPipeline, OutputStage, Reals, StageOf, as_reals, over
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class BlockTail:
    """Whole blocks of `size` channels scaled by one stage, the channels left over by another.

    Source: loops of vector code, which a scalar loop finishes.
    """

    whole: OutputStage
    tail: OutputStage
    size: int

    @classmethod
    def of(cls, whole: StageOf, tail: StageOf, size: int) -> StageOf:
        """Return a function that builds such a stage from real multipliers of length C."""

        def make(real: ArrayLike) -> OutputStage:
            reals = as_reals(real)
            at = len(reals) - len(reals) % size
            if at in (0, len(reals)):
                return (whole if at else tail)(reals)
            return cls(whole(reals[:at]), tail(reals[at:]), size)

        return make

    @property
    def real(self) -> Reals:
        """The real multipliers; see OutputStage.real."""
        return np.concatenate([self.whole.real, self.tail.real])

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale accumulators; see OutputStage.__call__."""
        return OutputPipeline(self, *AS_INT32)(accumulator)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        at, limits = len(self.whole.real), (zero_point, low, high)
        added = over(bias, accumulator.shape[1])
        self.whole.narrow(accumulator[:, :at], out[:, :at], added[:at], *limits)
        self.tail.narrow(accumulator[:, at:], out[:, at:], added[at:], *limits)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat. One channel is no whole block."""
        self.tail.narrow_flat(accumulator, out, zero_point, low, high)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the call; see OutputStage.bind_flat."""
        return partial(self.narrow_flat, accumulator, out, zero_point, low, high)
