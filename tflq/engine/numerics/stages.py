"""Output stages: how an integer accumulator becomes codes of the output. Values, so that a report can print them.

A *stage* scales: accumulator LSB -> output LSB, with its roundings. A *pipeline* is a stage, then the zero point, then
the clamp, then the narrow type, in one compiled pass. Multipliers are per tensor (length 1) or per channel (length C,
along the last axis of the accumulator).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tflq.engine.jit.compiled import Compiled
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.multiplier import (
    quantize_multipliers,
    quantize_multipliers_single_rounding,
    round_twice,
    rounding_twice,
)
from tflq.engine.numerics.stage_loops import (
    NO_SHIFT,
    SATURATES,
    WRAPS,
    double_rounding_rows,
    single_rounding_rows,
    wide_rows,
)
from tflq.typing import Array

Reals = NDArray[np.float64]
Ints32 = NDArray[np.int32]

#: No zero point, no limits but those of int32.
AS_INT32 = ZeroPoint(0), Clamp(-(2**31), 2**31 - 1), np.dtype(np.int32)


@runtime_checkable
class OutputStage(Protocol):
    """A scaling of accumulators with exact semantics."""

    @property
    def real(self) -> Reals:
        """The real multipliers it represents, float64, length 1 or C."""
        ...

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale `accumulator` (int32 or int64, channels last). The result is not clamped: it wraps as int32 does."""
        ...

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Compute out[r, c] = clamp(scale(accumulator[r, c] + bias[c]) + zero_point). All 2-D, rows by channels.

        `bias` has length 1 or C, or is `repeat`, which is fastest. `out` is contiguous.
        """
        ...

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Do as `narrow` does for a per-tensor stage without a bias; both arrays are (1, any size)."""
        ...

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the call of `narrow_flat` with these arguments."""
        ...


def is_stage(value: object) -> bool:
    """Return whether an object scales accumulators. Asked once for every type: the question is slow."""
    kind = type(value)
    if kind not in _IS_STAGE:
        _IS_STAGE[kind] = isinstance(value, OutputStage) and not isinstance(value, type)
    return _IS_STAGE[kind]


#: The answers of `is_stage`, by type.
_IS_STAGE: dict[type, bool] = {}


#: Builds a stage from real multipliers (float64, scalar or length C).
StageOf = Callable[[ArrayLike], OutputStage]


def as_reals(real: ArrayLike) -> Reals:
    """Convert real multipliers to a stage's form: float64, one-dimensional, read-only."""
    values = np.atleast_1d(np.asarray(real, np.float64))
    values.setflags(write=False)
    return values


#: Bits of an accumulator.
WORD = 32
#: Parameters are repeated up to this length, so that loops are long enough to run at full speed.
_PERIOD = 1024
#: A bias of zeros, as long as any period.
NO_BIAS = np.zeros(_PERIOD, np.int32)


def repeat(values: Array) -> Array:
    """Repeat parameters of length 1 or C over one period, at least once. The result is writable and contiguous."""
    return np.tile(values, max(1, _PERIOD // max(1, len(values))))


def over(values: Array, channels: int) -> Array:
    """Return `values` of length 1, one period or C as one per channel."""
    if len(values) == channels:
        return values
    return values[:channels] if len(values) > channels else np.full(channels, values[0], values.dtype)


def is_one_run(accumulator: Array, bias: Array, period: int) -> bool:
    """Return whether rows may be one long run: whole rows in a period, the bias repeated like the constants."""
    return len(bias) == period > accumulator.shape[1] and accumulator.flags.c_contiguous


@dataclass(frozen=True, slots=True, eq=False)
class _FixedPoint:
    """A stage with one Q31 mantissa and one shift (> 0 is left) per channel."""

    real: Reals
    mantissa: Ints32
    shift: Ints32
    period: tuple[Array, ...] = field(repr=False)  # the loop's constants, repeated
    shifts_left: int = field(repr=False)  # NO_SHIFT if no shift is > 0

    loop: ClassVar[Compiled[..., None]]
    shifting: ClassVar[int] = WRAPS  # how shifts to the left end

    @staticmethod
    def quantize(real: Reals) -> tuple[Ints32, Ints32]:
        """Return mantissas (Q31) and shifts of real multipliers."""
        return quantize_multipliers(real)

    @classmethod
    def of(cls, real: ArrayLike) -> _FixedPoint:
        """Return the stage for these real multipliers (float64, scalar or length C)."""
        values = as_reals(real)
        return cls._made(values, *cls.quantize(values))

    @classmethod
    def of_fixed(cls, mantissa: ArrayLike, shift: ArrayLike) -> _FixedPoint:
        """Return the stage for given mantissas (Q31) and shifts (-31..30), scalars or length C."""
        mantissas = np.atleast_1d(np.asarray(mantissa, np.int32))
        shifts = np.atleast_1d(np.asarray(shift, np.int32))
        return cls._made(as_reals(np.ldexp(mantissas, shifts - 31)), mantissas, shifts)

    @classmethod
    def _made(cls, real: Reals, mantissa: Ints32, shift: Ints32) -> _FixedPoint:
        period = tuple(map(repeat, cls.constants(mantissa, shift)))
        return cls(real, mantissa, shift, period, cls.shifting if (shift > 0).any() else NO_SHIFT)

    @classmethod
    def constants(cls, mantissa: Ints32, shift: Ints32) -> tuple[Array, ...]:
        """Return the constants that the loop reads per channel."""
        return mantissa, shift

    def arguments(self, *arguments: Any) -> tuple[Any, ...]:
        """Return the loop's arguments: accumulators, out, bias, its constants, zero point, low and high."""
        return arguments

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale accumulators; see OutputStage.__call__."""
        return OutputPipeline(self, *AS_INT32)(accumulator)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        channels = accumulator.shape[1]
        constants = self.period
        if is_one_run(accumulator, bias, len(constants[0])):
            accumulator, out = accumulator.reshape(1, -1), out.reshape(1, -1)
        else:
            constants, bias = tuple([over(values, channels) for values in constants]), over(bias, channels)
        self.loop(*self.arguments(accumulator, out, bias, *constants, zero_point, low, high))

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat."""
        self.loop(*self.arguments(accumulator, out, NO_BIAS, *self.period, zero_point, low, high))

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the loop; see OutputStage.bind_flat."""
        return self.loop.bound(*self.arguments(accumulator, out, NO_BIAS, *self.period, zero_point, low, high))


class DoubleRounding(_FixedPoint):
    """int32 accumulators; half up in the high multiplication, then half away in the right shift.

    Both roundings are done with one shift: see round_twice. Float32 accumulators hold integers of int32. Source: LiteRT
    MultiplyByQuantizedMultiplier, default build.
    """

    __slots__ = ()
    loop: ClassVar[Compiled[..., None]] = double_rounding_rows

    @classmethod
    def constants(cls, mantissa: Ints32, shift: Ints32) -> tuple[Array, ...]:
        """Return mantissa (Q31), left shift modulo 32, and the arguments of round_twice: offset, correction, shift."""
        wide = shift.astype(np.int64)
        return mantissa, np.maximum(wide, 0) & 31, *rounding_twice(np.maximum(-wide, 0))

    def arguments(self, *arguments: Any) -> tuple[Any, ...]:
        """Return the loop's arguments; see _FixedPoint.arguments."""
        return *arguments, self.shifts_left, arguments[0].itemsize <= 4

    def of_one(self) -> tuple[int, ...]:
        """Return the arguments of `scale_twice` for a per-tensor stage."""
        mantissa, left, offset, below, right = (int(values[0]) for values in self.period)
        return mantissa, left, offset, below, right


class SaturatedTwice(DoubleRounding):
    """DoubleRounding with shifts to the left that saturate. Source: gemmlowp fixedpoint.h ShiftLeft, no vectors."""

    __slots__ = ()
    shifting: ClassVar[int] = SATURATES


def tabulate(stage: OutputStage, values: Array) -> Ints32:
    """Scale a table's values (int32) by a per-tensor stage, with NumPy if possible, so that nothing is compiled."""
    if not isinstance(stage, DoubleRounding):
        return stage(values)
    mantissa, left, offset, below, right = stage.of_one()
    total = (values.astype(np.int64) << left).astype(np.int32).astype(np.int64)  # wraps
    scaled: Array = round_twice.python(total * mantissa, offset, below, right)
    return scaled.astype(np.int32)


class HalfUpTwice(DoubleRounding):
    """int32 accumulators; half up in the high multiplication, then half up again in the right shift.

    That is DoubleRounding without its correction of negative products: the two differ if the first product is negative
    and the second rounding meets a tie. A left shift of 32 or more gives 0, as vector instructions do; scalar
    instructions shift modulo 32. Source: ruy's kernels for AVX and later; vqrdmulh and vrshl of NEON.
    """

    __slots__ = ()

    @classmethod
    def constants(cls, mantissa: Ints32, shift: Ints32) -> tuple[Array, ...]:
        """Return DoubleRounding.constants without its correction below zero; far left shifts give a mantissa of 0."""
        kept = np.where(shift < WORD, mantissa, np.int32(0))
        mantissas, left, offset, below, right = DoubleRounding.constants(kept, shift)
        return mantissas, left, offset, np.zeros_like(below), right


class SingleRounding(_FixedPoint):
    """int32 accumulators; one rounding, half up. Source: the same function under TFLITE_SINGLE_ROUNDING."""

    __slots__ = ()
    loop = single_rounding_rows

    @staticmethod
    def quantize(real: Reals) -> tuple[Ints32, Ints32]:
        """Return mantissas and shifts; see _FixedPoint.quantize."""
        return quantize_multipliers_single_rounding(real)


class WideRounding(_FixedPoint):
    """int64 accumulators below 2**47; Q15 multiplier, one rounding, half up. Source: the int64 overload."""

    __slots__ = ()
    loop = wide_rows


@dataclass(frozen=True, slots=True, eq=False)
class OutputPipeline:
    """Stage, zero point (LSB of output), clamp (LSB of output), narrow type: accumulators -> codes."""

    stage: OutputStage
    zero_point: ZeroPoint
    clamp: Clamp
    dtype: np.dtype[Any]

    def __call__(self, accumulator: Array, bias: Array | None = None) -> Array:
        """Return the codes of `accumulator` (any shape, channels last; int32, int64, or floats that hold exact
        integers).

        `bias`, length 1 or C, is added first, in the accumulator's own width.
        """
        source, limits = np.ascontiguousarray(accumulator), (int(self.zero_point), *self.clamp)
        out = np.empty(accumulator.shape, self.dtype)
        if not out.size:
            return out
        if bias is None and len(self.stage.real) == 1:
            self.stage.narrow_flat(source.reshape(1, -1), out.reshape(1, -1), *limits)
        else:
            shape = (-1, accumulator.shape[-1] if accumulator.ndim else 1)
            added = NO_BIAS if bias is None else bias
            self.stage.narrow(source.reshape(shape), out.reshape(shape), added, *limits)
        return out

    def into(self, accumulator: Array, out: Array) -> Callable[[], object]:
        """Bind a call that fills `out` with the codes of accumulators, by a per-tensor stage; both are contiguous."""
        flat = accumulator.reshape(1, -1), out.reshape(1, -1)
        return self.stage.bind_flat(*flat, int(self.zero_point), *self.clamp)


def type_range(dtype: DTypeLike) -> Clamp:
    """Return the smallest and the largest code of an integer type."""
    info = np.iinfo(np.dtype(dtype))
    return Clamp(int(info.min), int(info.max))
