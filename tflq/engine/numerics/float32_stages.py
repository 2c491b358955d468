"""Output stages with float32 multipliers: XNNPACK's ways to scale 8-bit results.

All of them clamp what they scaled, and only FloatRoundingWrapped wraps. Constants of a channel repeat over a period,
as in tflq/engine/numerics/stages.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tflq.engine.jit.compiled import Compiled, Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_up, wrap_int32
from tflq.engine.numerics.stages import Ints32, OutputPipeline, Reals, repeat, type_range
from tflq.typing import Array

_INT32 = np.dtype(np.int32)
_NO_BIAS = np.zeros(1024, np.int32)

#: The result of the conversion to int32 for values up to it, and the int8 that it wraps to.
LEAST_INT32, HIGHEST_INT8 = -(2.0**31), 127

#: A right shift by this many bits rounds every product of an int32 and 24 bits to 0.
_ALL_BITS = 62


@dataclass(frozen=True, slots=True, eq=False)
class _Float32Scaled:
    """A stage with one float32 multiplier per channel."""

    real: Reals
    period: tuple[Array, ...] = field(repr=False)  # the loop's constants, repeated

    loop: ClassVar[Compiled[..., None]]

    @classmethod
    def of(cls, real: ArrayLike) -> _Float32Scaled:
        """Return the stage for these real multipliers (scalar or length C), rounded to float32."""
        factors = np.atleast_1d(np.asarray(real, np.float64)).astype(np.float32)
        return cls(factors.astype(np.float64), tuple(map(repeat, cls.constants(factors))))

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the constants that the loop reads per channel."""
        raise NotImplementedError

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale int32 accumulators in float32 and saturate; see OutputStage.__call__."""
        return OutputPipeline(self, ZeroPoint(0), type_range(_INT32), _INT32)(accumulator)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        channels, constants = accumulator.shape[1], self.period
        if len(bias) == len(constants[0]) > channels and accumulator.flags.c_contiguous:
            accumulator, out = accumulator.reshape(1, -1), out.reshape(1, -1)
        else:
            constants = tuple([_per_channel(values, channels) for values in constants])
            bias = _per_channel(bias, channels)
        self.loop(accumulator, out, bias, *constants, zero_point, low, high)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat."""
        self.loop(accumulator, out, _NO_BIAS, *self.period, zero_point, low, high)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the loop; see OutputStage.bind_flat."""
        return self.loop.bound(accumulator, out, _NO_BIAS, *self.period, zero_point, low, high)


def _per_channel(values: Array, channels: int) -> Array:
    if len(values) >= channels:
        return values[:channels]
    return np.full(channels, values[0], values.dtype)


@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def _even_rows(
    accumulator: Array, out: Array, bias: Array, real: Array, wrapping: Array, zero_point: Int, low: Int, high: Int
) -> None:
    """Scale rows as FloatRoundingEven does, and as FloatRoundingWrapped, whose values up to `wrapping` wrap.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    period, offset = real.size, np.int32(zero_point)
    lowest, highest = np.float32(low - zero_point), np.float32(high - zero_point)
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                total = np.int32(wrap_int32(np.int64(np.int32(source[k])) + np.int64(bias[k])))
                scaled = np.float32(np.float32(total) * real[k])
                code = np.int32(np.rint(min(max(scaled, lowest), highest))) + offset
                codes[k] = HIGHEST_INT8 if offset < 0 and scaled <= wrapping[k] else code


@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def _exact_rows(
    accumulator: Array, out: Array, bias: Array, mantissa: Array, shift: Array, zero_point: Int, low: Int, high: Int
) -> None:
    """Scale rows as ExactHalfUp does.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    period = mantissa.size
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                total = wrap_int32(np.int64(source[k]) + np.int64(bias[k]))
                scaled = divide_by_pot_half_up(total * mantissa[k], shift[k])
                codes[k] = clamp(scaled + zero_point, low, high)


@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def _short_rows(
    accumulator: Array,
    out: Array,
    bias: Array,
    mantissa: Array,
    left: Array,
    right: Array,
    zero_point: Int,
    low: Int,
    high: Int,
) -> None:
    """Scale rows as ShortHalfUp does.

    The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length, and `bias` that
    length at least.
    """
    rows, columns = accumulator.shape
    period = mantissa.size
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                total = wrap_int32(np.int64(source[k]) + np.int64(bias[k]))
                short = saturate_int16(divide_by_pot_half_up(total << left[k], right[k]))
                scaled = saturate_int16(divide_by_pot_half_up(short * mantissa[k], 15))
                codes[k] = clamp(scaled + zero_point, low, high)


@compiled
def saturate_int16(x: Int) -> Int:
    """Saturate `x` to int16."""
    return clamp(x, np.int64(-(2**15)), np.int64(2**15 - 1))


class FloatRoundingEven(_Float32Scaled):
    """The accumulator as float32, one float32 product, half to even. Limits of int32 hold to 24 bits only.

    Source: XNNPACK's fp32 requantization, by conversion or by addition of 12582912.
    """

    __slots__ = ()
    loop: ClassVar[Compiled[..., None]] = _even_rows

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multipliers, float32, and the scaled values that wrap: none."""
        return factors, np.full_like(factors, np.nan)


class FloatRoundingWrapped(FloatRoundingEven):
    """FloatRoundingEven, except that values below int32 become its lowest one, which a negative zero point wraps.

    The result is then the highest int8, even above the activation's upper limit. Source: XNNPACK's qs8-qc8w-gemm and
    qs8-qc8w-igemm for AVX-512 and AVX-VNNI, qs8-qc4w-gemm for all of x86: cvtps_epi32, then add_epi32.
    """

    __slots__ = ()

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multipliers and the scaled values that wrap, float32."""
        return factors, np.full_like(factors, LEAST_INT32)


class ExactHalfUp(_Float32Scaled):
    """The exact product with a float32 multiplier, rounded once, half up. Multipliers are below 256.

    Source: XNNPACK's rndnu requantization.
    """

    __slots__ = ()
    loop: ClassVar[Compiled[..., None]] = _exact_rows

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multiplier as 24 bits and a shift to the right, int64."""
        fraction, exponent = np.frexp(factors)
        mantissa = (fraction * np.float32(2**24)).astype(np.int64)
        return mantissa, np.clip(24 - exponent.astype(np.int64), 0, _ALL_BITS)


class ShortHalfUp(_Float32Scaled):
    """The accumulator shifted into 16 bits, half up, then a product with 15 bits of the multiplier, half up again;
    both saturate.

    Source: XNNPACK's rndnu16 requantization.
    """

    __slots__ = ()
    loop: ClassVar[Compiled[..., None]] = _short_rows

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multiplier as 15 bits, and the shifts of the accumulator to the left and to the right, int64."""
        fraction, exponent = np.frexp(factors)
        mantissa = np.floor(fraction.astype(np.float64) * 2**15 + 0.5).astype(np.int64)
        is_one = mantissa == 1 << 15
        mantissa, shift = np.where(is_one, 1 << 14, mantissa), exponent.astype(np.int64) + is_one
        return mantissa, np.clip(shift, 0, 31), np.clip(-shift, 0, _ALL_BITS)
