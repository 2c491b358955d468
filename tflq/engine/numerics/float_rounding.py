"""An output stage whose product is computed and rounded in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from tflq.engine.numerics.stage_loops import Ints32, Reals, float_rounding_rows
from tflq.engine.numerics.stages import AS_INT32, NO_BIAS, OutputPipeline, as_reals, is_one_run, over, repeat
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class FloatRounding:
    """float64 product, rounded half away from zero, converted to int32 as x86 does.

    Source: LiteRT 2.3 reference FullyConnected since April 2025. `wraps` is true for int32 accumulators. A product
    beyond int32 gives INT32_MIN, to which the zero point is then added in int32: below zero it wraps to the top.
    """

    real: Reals
    period: Reals = field(repr=False)  # `real`, repeated
    wraps: bool = True

    @classmethod
    def of(cls, real: ArrayLike) -> FloatRounding:
        """Return the stage for int32 accumulators and these real multipliers."""
        values = as_reals(real)
        return cls(values, repeat(values))

    @classmethod
    def of_wide(cls, real: ArrayLike) -> FloatRounding:
        """Return the stage for int64 accumulators and these real multipliers."""
        values = as_reals(real)
        return cls(values, repeat(values), wraps=False)

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale accumulators; see OutputStage.__call__."""
        return OutputPipeline(self, *AS_INT32)(accumulator)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        channels, real = accumulator.shape[1], self.period
        if is_one_run(accumulator, bias, len(real)):
            accumulator, out = accumulator.reshape(1, -1), out.reshape(1, -1)
        else:
            real, bias = over(real, channels), over(bias, channels)
        float_rounding_rows(accumulator, out, bias, real, zero_point, low, high, self.wraps)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat."""
        float_rounding_rows(accumulator, out, NO_BIAS, self.period, zero_point, low, high, self.wraps)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the loop; see OutputStage.bind_flat."""
        return float_rounding_rows.bound(accumulator, out, NO_BIAS, self.period, zero_point, low, high, self.wraps)
