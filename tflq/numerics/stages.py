"""Output stages: how an integer accumulator becomes codes of the output. Values, so that a report can print them.

A *stage* scales: accumulator LSB -> output LSB, with its roundings. A *pipeline* is a stage, then the zero point, then
the clamp, then the narrow type, in one compiled pass. Multipliers are per tensor (length 1) or per channel (length C,
along the last axis of the accumulator).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tflq.errors import UndefinedResultError
from tflq.numerics.compiled import Compiled, Int, compiled
from tflq.numerics.multiplier import (
    multiply_double_rounding,
    multiply_single_rounding,
    multiply_wide,
    quantize_multiplier,
)
from tflq.numerics.rounding import clamp, float_to_int32, round_half_away, wrap_int32

Array = NDArray[Any]
Reals = NDArray[np.float64]
Ints32 = NDArray[np.int32]

_LOW, _HIGH = -(2**31), 2**31 - 1


class OutputStage(Protocol):
    """A scaling of accumulators with exact semantics."""

    @property
    def real(self) -> Reals:
        """The real multipliers it stands for, float64, length 1 or C."""
        ...

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale `accumulator` (int32 or int64, channels last). The result is not clamped: it wraps as int32 does."""
        ...

    def narrow(
        self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int
    ) -> None:  # fmt: skip
        """out[r, c] = clamp(scale(accumulator[r, c] + bias[c]) + zero_point). All 2-D, rows by channels."""
        ...


def _as_reals(real: ArrayLike) -> Reals:
    values = np.atleast_1d(np.asarray(real, np.float64))
    values.setflags(write=False)
    return values


def quantize_multipliers(real: Reals) -> tuple[Ints32, Ints32]:
    """QuantizeMultiplier over an array: mantissas (Q31) and shifts, each int32 of the same length."""
    pairs = [quantize_multiplier(float(r)) for r in real]
    if any(not -31 <= shift <= 30 for _, shift in pairs):
        worst = float(real[int(np.argmax(np.abs(real)))])
        raise UndefinedResultError("MultiplyByQuantizedMultiplier", f"a shift beyond 30 bits (real multiplier {worst})")
    return np.array([m for m, _ in pairs], np.int32), np.array([s for _, s in pairs], np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _FixedPoint:
    """A stage made of a Q31 mantissa and a shift (> 0 is left) per channel."""

    real: Reals
    mantissa: Ints32
    shift: Ints32

    loop: ClassVar[Compiled[..., None]]

    @classmethod
    def of(cls, real: ArrayLike) -> _FixedPoint:
        """The stage for these real multipliers (float64, scalar or length C)."""
        values = _as_reals(real)
        return cls(values, *quantize_multipliers(values))

    def __call__(self, accumulator: Array) -> Ints32:
        """As OutputStage.__call__."""
        rows = _rows(accumulator)
        out = np.empty(rows.shape, np.int32)
        self.narrow(rows, out, _NO_BIAS, 0, _LOW, _HIGH)
        return out.reshape(accumulator.shape)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """As OutputStage.narrow."""
        channels = accumulator.shape[1]
        self.loop(
            accumulator, out, _spread(bias, channels), _spread(self.mantissa, channels), _spread(self.shift, channels),
            zero_point, low, high,
        )  # fmt: skip


@compiled
def _double_rounding_rows(
    accumulator: Array, out: Array, bias: Array, mantissa: Ints32, shift: Ints32, zero_point: Int, low: Int, high: Int
) -> None:  # fmt: skip
    rows, channels = accumulator.shape
    for r in range(rows):
        for c in range(channels):
            total = wrap_int32(np.int64(accumulator[r, c]) + np.int64(bias[c]))
            scaled = multiply_double_rounding(total, mantissa[c], shift[c])
            out[r, c] = clamp(wrap_int32(scaled + zero_point), low, high)


@compiled
def _single_rounding_rows(
    accumulator: Array, out: Array, bias: Array, mantissa: Ints32, shift: Ints32, zero_point: Int, low: Int, high: Int
) -> None:  # fmt: skip
    rows, channels = accumulator.shape
    for r in range(rows):
        for c in range(channels):
            total = wrap_int32(np.int64(accumulator[r, c]) + np.int64(bias[c]))
            scaled = multiply_single_rounding(total, mantissa[c], shift[c])
            out[r, c] = clamp(wrap_int32(scaled + zero_point), low, high)


@compiled
def _wide_rows(
    accumulator: Array, out: Array, bias: Array, mantissa: Ints32, shift: Ints32, zero_point: Int, low: Int, high: Int
) -> None:  # fmt: skip
    rows, channels = accumulator.shape
    for r in range(rows):
        for c in range(channels):
            total = np.int64(accumulator[r, c]) + np.int64(bias[c])
            scaled = multiply_wide(total, mantissa[c], shift[c])
            out[r, c] = clamp(wrap_int32(scaled + zero_point), low, high)


@compiled
def _float_rounding_rows(
    accumulator: Array, out: Array, bias: Array, real: Reals, zero_point: Int, low: Int, high: Int, wraps: bool
) -> None:  # fmt: skip
    rows, channels = accumulator.shape
    for r in range(rows):
        for c in range(channels):
            total = np.int64(accumulator[r, c]) + np.int64(bias[c])
            if wraps:
                total = wrap_int32(total)
            scaled = round_half_away(np.float64(total) * real[c])
            out[r, c] = clamp(wrap_int32(float_to_int32(scaled) + zero_point), low, high)


class DoubleRounding(_FixedPoint):
    """int32 accumulators; half up in the high multiplication, then half away in the right shift.

    Source: LiteRT MultiplyByQuantizedMultiplier, default build.
    """

    __slots__ = ()
    loop = _double_rounding_rows


class SingleRounding(_FixedPoint):
    """int32 accumulators; one rounding, half up. Source: the same function under TFLITE_SINGLE_ROUNDING."""

    __slots__ = ()
    loop = _single_rounding_rows


class WideRounding(_FixedPoint):
    """int64 accumulators below 2**47; Q15 multiplier, one rounding, half up. Source: the int64 overload."""

    __slots__ = ()
    loop = _wide_rows


@dataclass(frozen=True, slots=True, eq=False)
class FloatRounding:
    """float64 product, rounded half away from zero.

    Source: LiteRT 2.3 reference FullyConnected since April 2025. `wraps` says that the accumulator is int32.
    """

    real: Reals
    wraps: bool = True

    @classmethod
    def of(cls, real: ArrayLike) -> FloatRounding:
        """The stage for int32 accumulators and these real multipliers."""
        return cls(_as_reals(real))

    @classmethod
    def of_wide(cls, real: ArrayLike) -> FloatRounding:
        """The stage for int64 accumulators and these real multipliers."""
        return cls(_as_reals(real), wraps=False)

    def __call__(self, accumulator: Array) -> Ints32:
        """As OutputStage.__call__."""
        rows = _rows(accumulator)
        out = np.empty(rows.shape, np.int32)
        self.narrow(rows, out, _NO_BIAS, 0, _LOW, _HIGH)
        return out.reshape(accumulator.shape)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """As OutputStage.narrow."""
        channels = accumulator.shape[1]
        _float_rounding_rows(
            accumulator, out, _spread(bias, channels), _spread(self.real, channels), zero_point, low, high, self.wraps
        )


_NO_BIAS = np.zeros(1, np.int32)


def _rows(accumulator: Array) -> Array:
    last = accumulator.shape[-1] if accumulator.ndim else 1
    return np.ascontiguousarray(accumulator).reshape(-1, last) if accumulator.size else accumulator.reshape(0, last)


def _spread(values: Array, channels: int) -> Array:
    return np.full(channels, values[0], values.dtype) if len(values) == 1 and channels != 1 else values


@dataclass(frozen=True, slots=True, eq=False)
class OutputPipeline:
    """Stage, zero point (LSB of output), clamp [low, high] (LSB of output), narrow type: accumulators -> codes."""

    stage: OutputStage
    zero_point: int
    low: int
    high: int
    dtype: np.dtype[Any]

    def __call__(self, accumulator: Array, bias: Array | None = None) -> Array:
        """Codes of `accumulator` (any shape, channels last; int32, int64, or floats that hold exact integers).

        `bias`, length 1 or C, is added first, in the accumulator's own width.
        """
        rows = _rows(accumulator)
        out = np.empty(rows.shape, self.dtype)
        if out.size:
            self.stage.narrow(rows, out, _NO_BIAS if bias is None else bias, self.zero_point, self.low, self.high)
        return out.reshape(accumulator.shape)


def type_range(dtype: DTypeLike) -> tuple[int, int]:
    """Smallest and largest code of an integer type."""
    info = np.iinfo(np.dtype(dtype))
    return int(info.min), int(info.max)
