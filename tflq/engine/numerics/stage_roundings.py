"""The output stages of runtimes. A class states everything about its rounding:

- its constants, from real multipliers;
- its code: a compiled function of one accumulator, which loops and tables call;
- `vector_steps`: how micro-kernels scale sums in registers, if they can;
- `rises`: where it is proved that codes never fall as the accumulator rises;
- `worked`: its steps in words.

`NAMED_STAGES` gives the names that profiles use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tflq.engine.jit.compiled import Compiled, Int, compiled
from tflq.engine.numerics.multiplier import (
    multiply_single_rounding,
    multiply_wide,
    quantize_multipliers,
    quantize_multipliers_single_rounding,
    reduce_multiplier,
    round_twice,
    rounding_twice,
)
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_up, float_to_int32, round_half_away, wrap_int32
from tflq.engine.numerics.stages import (
    AS_INT32,
    DIVIDE_ALL_HALF_AWAY,
    DIVIDE_HALF_AWAY,
    FLOAT32_HALF_EVEN,
    FLOAT64_HALF_AWAY,
    HIGH_HALF_UP,
    LIMIT,
    ONCE_HALF_UP,
    SHIFT_LEFT,
    SHORT_HALF_UP,
    Constants,
    Ints32,
    Ints64,
    LoopedStage,
    OutputPipeline,
    OutputStage,
    Reals,
    StageOf,
    VectorScaling,
    WorkedStep,
    as_int32,
    as_reals,
    clamp_step,
    code_of,
    double_rounding_steps,
    entry,
    half_up_step,
    high_product_steps,
    loop,
    over,
    repeat,
    wrap,
    wrap_step,
)
from tflq.typing import Array

#: Bits of an accumulator.
WORD = 32
_INT32 = 2**31
#: The excess of a multiplier of 15 bits over the real one.
_SLACK = 1 + 2.0**-12
#: How shifts to the left end that leave int32; the first means that there are none.
_NO_SHIFT, _WRAPS, _SATURATES = 0, 1, 2
#: The result of the conversion to int32 for values up to it, and the int8 that it wraps to.
_LEAST_INT32, _HIGHEST_INT8 = -(2.0**31), 127
#: A right shift by this many bits rounds every product of an int32 and 24 bits to 0.
_ALL_BITS = 62


def _stays_within(real: Reals, largest: Ints64, zero_point: int) -> bool:
    """Return whether multipliers are not negative, and scaled values and the zero point stay well inside int32."""
    reals = np.broadcast_to(real, largest.shape)
    with np.errstate(all="ignore"):
        return bool(np.all(reals >= 0) and np.all(largest * reals * _SLACK + abs(zero_point) + 4 < _INT32))


def _scales_below(real: Reals, largest: int) -> bool:
    """Return whether multipliers are finite and no scaled sum reaches the limit of vector steps."""
    return bool(np.all(np.isfinite(real))) and largest * float(np.abs(real).max()) < LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class _FixedPoint(LoopedStage):
    """A stage with one Q31 mantissa and one shift (> 0 is left) per channel."""

    mantissa: Ints32
    shift: Ints32

    shifting: ClassVar[int] = _WRAPS  # how shifts to the left end; the loop's flag if there are any

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
        flag = cls.shifting if (shift > 0).any() else _NO_SHIFT
        return cls(real, tuple(map(repeat, cls.constants(mantissa, shift))), flag, mantissa, shift)

    @classmethod
    def constants(cls, mantissa: Ints32, shift: Ints32) -> tuple[Array, ...]:
        """Return the constants that the loop reads per channel."""
        return mantissa, shift

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether shifted sums fit int32 and shifts fit their words; see OutputStage.rises."""
        shift = np.broadcast_to(self.shift.astype(np.int64), largest.shape)
        if np.any(self.mantissa < 0) or np.any(shift > 30) or np.any(shift < -31):
            return False
        fits = np.all(largest.astype(np.float64) * np.exp2(np.maximum(shift, 0)) < _INT32)
        return bool(fits) and _stays_within(self.real, largest, zero_point)

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the multiplier, in both forms, and the steps on one accumulator; see OutputStage.worked."""
        mantissa, shift = entry(self.mantissa, channel), entry(self.shift, channel)
        how = f"{mantissa} * 2^{shift - 31}: mantissa Q31, shift {shift}"
        real = WorkedStep("multiplier", entry(self.real, channel), how)
        return [real, *self.worked_fixed(total, mantissa, shift)]

    def worked_fixed(self, total: int, mantissa: int, shift: int) -> list[WorkedStep]:
        """Return the steps on one accumulator for its multiplier."""
        raise NotImplementedError


@compiled
def scale_twice(total: Int, mantissa: Int, left: Int, offset: Int, below: Int, right: Int) -> Int:
    """Scale an int32 accumulator by the constants that DoubleRounding.of_one returns."""
    return wrap_int32(round_twice(wrap_int32(total << left) * mantissa, offset, below, right))


@compiled
def _twice(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator with two roundings, done with one shift; `flag` shows how left shifts end.

    The caller guarantees: the constants are longer than `k`.
    """
    whole = np.int64(np.int32(value)) if is_short else np.int64(value)
    total = wrap_int32(whole + np.int64(bias))
    if flag == _WRAPS:
        total = wrap_int32(total << constants[1][k])
    elif flag:
        total = clamp(total << constants[1][k], -(2**31), 2**31 - 1)
    scaled = round_twice(total * np.int64(constants[0][k]), constants[2][k], constants[3][k], constants[4][k])
    # 32 bits are half as wide, so vectors hold twice as many
    return clamp(np.int32(wrap_int32(scaled + zero)), np.int32(low), np.int32(high))


class DoubleRounding(_FixedPoint):
    """int32 accumulators; half up in the high multiplication, then half away in the right shift.

    Both roundings are done with one shift: see round_twice. Float32 accumulators hold integers of int32. Source: LiteRT
    MultiplyByQuantizedMultiplier, default build.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds twice"
    rows: ClassVar[Compiled[..., None]] = loop(_twice)

    @classmethod
    def constants(cls, mantissa: Ints32, shift: Ints32) -> tuple[Array, ...]:
        """Return mantissa (Q31), left shift modulo 32, and the arguments of round_twice: offset, correction, shift."""
        wide = shift.astype(np.int64)
        return mantissa, np.maximum(wide, 0) & 31, *rounding_twice(np.maximum(-wide, 0))

    def of_one(self) -> tuple[int, ...]:
        """Return the arguments of `scale_twice` for a per-tensor stage."""
        mantissa, left, offset, below, right = (int(values[0]) for values in self.period)
        return mantissa, left, offset, below, right

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return a high product and a division, half up below zero where nothing is corrected there."""
        left, right = np.maximum(self.shift, 0), np.maximum(-self.shift, 0)
        if self.mantissa.min() < 0 or right.max() > 31 or left.max() > 30 or largest << int(left.max()) >= LIMIT:
            return None
        half, _, _ = rounding_twice(right.astype(np.int64))
        below = self.constants(self.mantissa, self.shift)[3] >> 31
        step, divide = DIVIDE_HALF_AWAY, as_int32(half >> 31, below, right)
        if np.all(below == -1):
            step, divide = DIVIDE_ALL_HALF_AWAY, as_int32(half >> 31, right)
        if not left.any():
            return VectorScaling((HIGH_HALF_UP, step), (*as_int32(self.mantissa), *divide))
        return VectorScaling((SHIFT_LEFT, HIGH_HALF_UP, step), (*as_int32(left, self.mantissa), *divide))

    def worked_fixed(self, total: int, mantissa: int, shift: int) -> list[WorkedStep]:
        """Return a high product and a division; see _FixedPoint.worked_fixed."""
        return double_rounding_steps(total, mantissa, shift)


class SaturatedTwice(DoubleRounding):
    """DoubleRounding with shifts to the left that saturate. Source: gemmlowp fixedpoint.h ShiftLeft, no vectors."""

    __slots__ = ()
    words: ClassVar[str] = "rounds twice, saturates"
    shifting: ClassVar[int] = _SATURATES

    def worked_fixed(self, total: int, mantissa: int, shift: int) -> list[WorkedStep]:
        """Return a saturated shift and the steps of DoubleRounding; see _FixedPoint.worked_fixed."""
        left = max(shift, 0)
        shifted = int(clamp(wrap(total) << left, -(2**31), 2**31 - 1))
        saturated = [WorkedStep("shifted left, saturated", shifted, f"{wrap(total)} << {left}")] if left else []
        return [*saturated, *double_rounding_steps(shifted, mantissa, min(shift, 0))]


class HalfUpTwice(DoubleRounding):
    """int32 accumulators; half up in the high multiplication, then half up again in the right shift.

    That is DoubleRounding without its correction of negative products: the two differ if the first product is negative
    and the second rounding meets a tie. A left shift of 32 or more gives 0, as vector instructions do; scalar
    instructions shift modulo 32. Source: ruy's kernels for AVX and later; vqrdmulh and vrshl of NEON.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds twice, half up"

    @classmethod
    def constants(cls, mantissa: Ints32, shift: Ints32) -> tuple[Array, ...]:
        """Return DoubleRounding.constants without its correction below zero; far left shifts give a mantissa of 0."""
        kept = np.where(shift < WORD, mantissa, np.int32(0))
        mantissas, left, offset, below, right = DoubleRounding.constants(kept, shift)
        return mantissas, left, offset, np.zeros_like(below), right

    def worked_fixed(self, total: int, mantissa: int, shift: int) -> list[WorkedStep]:
        """Return a high product and a division; see _FixedPoint.worked_fixed."""
        steps, value, exponent = high_product_steps(total, mantissa, shift)
        if exponent:
            steps.append(half_up_step("divided by a power of two, half up", value, exponent))
        return steps


def tabulate(stage: OutputStage, values: Array) -> Ints32:
    """Scale a table's values (int32) by a per-tensor stage, with NumPy if possible, so that nothing is compiled."""
    if not isinstance(stage, DoubleRounding):
        return stage(values)
    mantissa, left, offset, below, right = stage.of_one()
    total = (values.astype(np.int64) << left).astype(np.int32).astype(np.int64)  # wraps
    scaled: Array = round_twice.python(total * mantissa, offset, below, right)
    return scaled.astype(np.int32)


@compiled
def _once(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator with one rounding, half up.

    The caller guarantees: the constants are longer than `k`.
    """
    total = wrap_int32(np.int64(value) + np.int64(bias))
    return clamp(wrap_int32(multiply_single_rounding(total, constants[0][k], constants[1][k]) + zero), low, high)


class SingleRounding(_FixedPoint):
    """int32 accumulators; one rounding, half up. Source: the same function under TFLITE_SINGLE_ROUNDING."""

    __slots__ = ()
    words: ClassVar[str] = "rounds once"
    rows = loop(_once)

    @staticmethod
    def quantize(real: Reals) -> tuple[Ints32, Ints32]:
        """Return mantissas and shifts; see _FixedPoint.quantize."""
        return quantize_multipliers_single_rounding(real)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return product and shift in 64 bits, the result cut to 32."""
        if self.mantissa.min() < 0 or self.shift.max() > 30 or self.shift.min() < -31:
            return None
        return VectorScaling((ONCE_HALF_UP,), as_int32(self.mantissa, 31 - self.shift))

    def worked_fixed(self, total: int, mantissa: int, shift: int) -> list[WorkedStep]:
        """Return the product, rounded; see _FixedPoint.worked_fixed."""
        sum32 = wrap(total)
        rounded = half_up_step("multiplied, half up, once", sum32 * mantissa, 31 - shift, f"{sum32} * {mantissa}")
        return [*wrap_step(total), rounded, *wrap_step(int(rounded.value))]


@compiled
def _wide(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one wide accumulator with one rounding, half up.

    The caller guarantees: the constants are longer than `k`.
    """
    total = np.int64(value) + np.int64(bias)
    return clamp(wrap_int32(multiply_wide(total, constants[0][k], constants[1][k]) + zero), low, high)


class WideRounding(_FixedPoint):
    """int64 accumulators below 2**47; Q15 multiplier, one rounding, half up. Source: the int64 overload."""

    __slots__ = ()
    words: ClassVar[str] = "rounds once in 64 bits"
    rows = loop(_wide)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return product and shift in 64 bits; the mantissa is reduced to 16 bits."""
        if self.mantissa.min() < 0 or self.shift.max() > 15 or self.shift.min() < -31:
            return None
        reduced = np.array([reduce_multiplier(m) for m in self.mantissa.tolist()])
        return VectorScaling((ONCE_HALF_UP,), as_int32(reduced, 15 - self.shift))

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether products with the 16-bit mantissa fit 64 bits; see OutputStage.rises."""
        shift = self.shift.astype(np.int64)
        within = np.all(shift <= 14) and np.all(shift > -31) and np.all(self.mantissa >= 0) and np.all(largest < 2**46)
        return bool(within) and _stays_within(self.real, largest, zero_point)

    def worked_fixed(self, total: int, mantissa: int, shift: int) -> list[WorkedStep]:
        """Return the reduced multiplier and the product, rounded; see _FixedPoint.worked_fixed."""
        short = int(reduce_multiplier(mantissa))
        reduced = WorkedStep("multiplier reduced to 16 bits", short, f"({mantissa} + 2^15) >> 16")
        rounded = half_up_step("multiplied, half up, once", total * short, 15 - shift, f"{total} * {short}")
        return [reduced, rounded, *wrap_step(int(rounded.value))]


@compiled
def _in_float64(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator with a float64 product; `flag` is true if accumulators wrap.

    The caller guarantees: the constants are longer than `k`.
    """
    total = np.int64(value) + np.int64(bias)
    if flag:
        total = wrap_int32(total)
    scaled = float_to_int32(round_half_away(np.float64(total) * constants[0][k]))
    return clamp(wrap_int32(scaled + zero), low, high)


class FloatRounding(LoopedStage):
    """float64 product, rounded half away from zero, converted to int32 as x86 does.

    Source: LiteRT 2.3 reference FullyConnected since April 2025. `flag` is 1 for int32 accumulators, which wrap. A
    product beyond int32 gives INT32_MIN, to which the zero point is then added in int32: below zero it wraps to the
    top.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds in float64"
    rows: ClassVar[Compiled[..., None]] = loop(_in_float64)

    @classmethod
    def of(cls, real: ArrayLike) -> FloatRounding:
        """Return the stage for int32 accumulators and these real multipliers."""
        values = as_reals(real)
        return cls(values, (repeat(values),), flag=1)

    @classmethod
    def of_wide(cls, real: ArrayLike) -> FloatRounding:
        """Return the stage for int64 accumulators and these real multipliers."""
        values = as_reals(real)
        return cls(values, (repeat(values),), flag=0)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return the float64 product, rounded; see OutputStage.vector_steps."""
        return VectorScaling((FLOAT64_HALF_AWAY,), (self.real,)) if _scales_below(self.real, largest) else None

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether nothing wraps; see OutputStage.rises."""
        return _stays_within(self.real, largest, zero_point)

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the product and its rounding; see OutputStage.worked."""
        wrapping = list(wrap_step(total)) if self.flag else []
        sum32, real = wrap(total) if self.flag else total, entry(self.real, channel)
        product = float(np.float64(sum32) * np.float64(real))
        whole = int(float_to_int32(round_half_away(product)))
        return [
            *wrapping,
            WorkedStep("multiplied in float64", product, f"{sum32} * {real!r}"),
            WorkedStep("rounded half away from zero", whole, f"round({product!r})"),
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Float32Scaled(LoopedStage):
    """A stage of XNNPACK with one float32 multiplier per channel. It clamps what it scaled, before it converts."""

    #: Multipliers are below this.
    limit: ClassVar[float] = np.inf

    @classmethod
    def of(cls, real: ArrayLike) -> _Float32Scaled:
        """Return the stage for these real multipliers (scalar or length C), rounded to float32."""
        factors = np.atleast_1d(np.asarray(real, np.float64)).astype(np.float32)
        return cls(factors.astype(np.float64), tuple(map(repeat, cls.constants(factors))), flag=0)

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the constants that the loop reads per channel."""
        raise NotImplementedError

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether multipliers are 0 or more and below `limit`, as scaled values are clamped."""
        return bool(np.all((self.real >= 0) & (self.real < self.limit)))

    def worked_end(self, moved: int, low: int, high: int) -> list[WorkedStep]:
        """Return the clamp; an added zero point cannot wrap."""
        return [clamp_step(moved, low, high)]


@compiled
def _even(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator by FloatRoundingEven, and by FloatRoundingWrapped, whose low values wrap.

    The caller guarantees: the constants are longer than `k`.
    """
    offset = np.int32(zero)
    total = np.int32(wrap_int32(np.int64(np.int32(value)) + np.int64(bias)))
    scaled = np.float32(np.float32(total) * constants[0][k])
    code = np.int32(np.rint(min(max(scaled, np.float32(low - zero)), np.float32(high - zero)))) + offset
    return _HIGHEST_INT8 if offset < 0 and scaled <= constants[1][k] else code


class FloatRoundingEven(_Float32Scaled):
    """The accumulator as float32, one float32 product, half to even. Limits of int32 hold to 24 bits only.

    Source: XNNPACK's fp32 requantization, by conversion or by addition of 12582912.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds in float32"
    rows: ClassVar[Compiled[..., None]] = loop(_even)

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multipliers, float32, and the scaled values that wrap: none."""
        return factors, np.full_like(factors, np.nan)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return the float32 product, rounded; see OutputStage.vector_steps."""
        real = self.real.astype(np.float32)
        return VectorScaling((FLOAT32_HALF_EVEN,), (real,)) if np.all(np.isfinite(real)) else None

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the product and its rounding; see OutputStage.worked."""
        sum32, real = wrap(total), np.float32(entry(self.real, channel))
        product = np.float32(np.float32(sum32) * real)
        return [
            *wrap_step(total),
            WorkedStep("multiplied in float32", float(product), f"{sum32} * {float(real)!r}"),
            WorkedStep("rounded half to even", int(np.rint(np.float64(product))), f"rint({float(product)!r})"),
        ]


class FloatRoundingWrapped(FloatRoundingEven):
    """FloatRoundingEven, except that values below int32 become its lowest one, which a negative zero point wraps.

    The result is then the highest int8, even above the activation's upper limit. Source: XNNPACK's qs8-qc8w-gemm and
    qs8-qc8w-igemm for AVX-512 and AVX-VNNI, qs8-qc4w-gemm for all of x86: cvtps_epi32, then add_epi32.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds in float32, wraps"

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multipliers and the scaled values that wrap, float32."""
        return factors, np.full_like(factors, _LEAST_INT32)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return the steps of FloatRoundingEven, if nothing wraps."""
        below = largest * float(np.abs(self.real).max()) < LIMIT
        return FloatRoundingEven.vector_steps(self, largest) if below else None

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether nothing wraps, which takes a negative zero point; see OutputStage.rises."""
        if zero_point >= 0:
            return FloatRoundingEven.rises(self, largest, zero_point)
        return _stays_within(self.real, largest, zero_point)

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the product and its rounding, not below int32; see OutputStage.worked."""
        *steps, rounded = FloatRoundingEven.worked(self, total, channel)
        return [*steps, WorkedStep(rounded.name, max(int(rounded.value), int(_LEAST_INT32)), rounded.how)]

    def worked_end(self, moved: int, low: int, high: int) -> list[WorkedStep]:
        """Return the clamp, or the wrap of a value below int32, which the clamp leaves at the highest int8."""
        if moved >= _LEAST_INT32:
            return [clamp_step(moved, low, high)]
        return [*wrap_step(moved), clamp_step(wrap(moved), low, _HIGHEST_INT8)]


@compiled
def _exact(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator with an exact product.

    The caller guarantees: the constants are longer than `k`.
    """
    total = wrap_int32(np.int64(value) + np.int64(bias))
    return clamp(divide_by_pot_half_up(total * constants[0][k], constants[1][k]) + zero, low, high)


class ExactHalfUp(_Float32Scaled):
    """The exact product with a float32 multiplier, rounded once, half up. Multipliers are below 256.

    Source: XNNPACK's rndnu requantization.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds the exact product"
    rows: ClassVar[Compiled[..., None]] = loop(_exact)
    limit: ClassVar[float] = 256.0

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multiplier as 24 bits and a shift to the right, int64."""
        fraction, exponent = np.frexp(factors)
        mantissa = (fraction * np.float32(2**24)).astype(np.int64)
        return mantissa, np.clip(24 - exponent.astype(np.int64), 0, _ALL_BITS)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return product and shift in 64 bits; see OutputStage.vector_steps."""
        if not _scales_below(self.real, largest):
            return None
        return VectorScaling((ONCE_HALF_UP,), as_int32(*self.constants(self.real.astype(np.float32))))

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the product, rounded; see OutputStage.worked."""
        mantissa, shift = (entry(values, channel) for values in self.period)
        sum32 = wrap(total)
        name, how = "multiplied exactly, half up, once", f"{sum32} * {mantissa}"
        return [*wrap_step(total), half_up_step(name, sum32 * mantissa, shift, how)]


@compiled
def _short(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator with a product of 16 bits.

    The caller guarantees: the constants are longer than `k`.
    """
    total = wrap_int32(np.int64(value) + np.int64(bias))
    short = _saturate_int16(divide_by_pot_half_up(total << constants[1][k], constants[2][k]))
    return clamp(_saturate_int16(divide_by_pot_half_up(short * constants[0][k], 15)) + zero, low, high)


@compiled
def _saturate_int16(x: Int) -> Int:
    return clamp(x, np.int64(-(2**15)), np.int64(2**15 - 1))


class ShortHalfUp(_Float32Scaled):
    """The accumulator shifted into 16 bits, half up, then a product with 15 bits of the multiplier, half up again;
    both saturate.

    Source: XNNPACK's rndnu16 requantization.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds in 16 bits"
    rows: ClassVar[Compiled[..., None]] = loop(_short)
    limit: ClassVar[float] = 256.0

    @classmethod
    def constants(cls, factors: Array) -> tuple[Array, ...]:
        """Return the multiplier as 15 bits, and the shifts of the accumulator to the left and to the right, int64."""
        fraction, exponent = np.frexp(factors)
        mantissa = np.floor(fraction.astype(np.float64) * 2**15 + 0.5).astype(np.int64)
        is_one = mantissa == 1 << 15
        mantissa, shift = np.where(is_one, 1 << 14, mantissa), exponent.astype(np.int64) + is_one
        return mantissa, np.clip(shift, 0, 31), np.clip(-shift, 0, _ALL_BITS)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return both products, the second of which cannot leave int16: its factor is below 1."""
        mantissa, left, right = self.constants(self.real.astype(np.float32))
        if not np.all(np.isfinite(self.real)) or right.max() > 31 or largest << int(left.max()) >= LIMIT:
            return None
        constants = as_int32((1 << right) >> 1, right, mantissa)
        if not left.any():
            return VectorScaling((SHORT_HALF_UP,), constants)
        return VectorScaling((SHIFT_LEFT, SHORT_HALF_UP), (*as_int32(left), *constants))

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return both products, saturated; see OutputStage.worked."""
        mantissa, left, right = (entry(values, channel) for values in self.period)
        sum32 = wrap(total)
        short = half_up_step("shifted, half up", sum32 << left, right, f"{sum32} << {left}")
        first = int(_saturate_int16(int(short.value)))
        product = half_up_step("multiplied, half up", first * mantissa, 15, f"{first} * {mantissa}")
        return [
            *wrap_step(total),
            short,
            WorkedStep("held in 16 bits", first),
            product,
            WorkedStep("held in 16 bits", int(_saturate_int16(int(product.value)))),
        ]


class Unscaled(LoopedStage):
    """int32 accumulators as they are, bias added, for kernels that scale them in another step."""

    __slots__ = ()
    rows: ClassVar[Compiled[..., None]] = loop(code_of)

    @classmethod
    def of(cls, real: ArrayLike) -> Unscaled:
        """Return the stage without scaling; `real` is 1."""
        values = as_reals(real)
        return cls(values, (repeat(values),), flag=0)

    @classmethod
    def pipeline(cls) -> OutputPipeline:
        """Return the pipeline accumulators -> int32, without zero point and clamp."""
        return OutputPipeline(cls.of(np.ones(1)), *AS_INT32)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return no steps: sums stay as they are."""
        return VectorScaling((), ())

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether accumulators fit int32; see OutputStage.rises."""
        return bool(np.all(largest < _INT32))

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the wrap of a sum beyond int32, if there is one; see OutputStage.worked."""
        return list(wrap_step(total))


@dataclass(frozen=True, slots=True, eq=False)
class BlockTail(OutputStage):
    """Whole blocks of `size` channels scaled by one stage, the channels left over by another.

    Source: loops of vector code, which a scalar loop finishes.
    """

    real: Reals = field(repr=False)
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
            blocks, rest = whole(reals[:at]), tail(reals[at:])
            return cls(np.concatenate([blocks.real, rest.real]), blocks, rest, size)

        return make

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        at, limits = len(self.whole.real), (zero_point, low, high)
        added = over(bias, accumulator.shape[1])
        self.whole.narrow(accumulator[:, :at], out[:, :at], added[:at], *limits)
        self.tail.narrow(accumulator[:, at:], out[:, at:], added[at:], *limits)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat. One channel is no whole block."""
        self.tail.narrow_flat(accumulator, out, zero_point, low, high)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return the steps of two stages side by side, if both have the same steps."""
        counts = len(self.whole.real), len(self.tail.real)
        whole, tail = self.whole.scaling(largest), self.tail.scaling(largest)
        if whole is None or tail is None or whole.steps != tail.steps:
            return None
        pairs = zip(whole.constants, tail.constants, strict=True)
        each = [[np.broadcast_to(part, count) for part, count in zip(pair, counts, strict=True)] for pair in pairs]
        return VectorScaling(whole.steps, tuple(map(np.concatenate, each)))

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether the codes of both never fall; see OutputStage.rises."""
        at = len(self.whole.real)
        return self.whole.rises(largest[:at], zero_point) and self.tail.rises(largest[at:], zero_point)

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the steps of the channel's own stage; see OutputStage.worked."""
        at = len(self.whole.real)
        return self.whole.worked(total, channel) if channel < at else self.tail.worked(total, channel - at)


#: Functions that build a stage, by the name that files and tables of profiles use.
NAMED_STAGES: Mapping[str, StageOf] = {
    "double-rounding": DoubleRounding.of,
    "half-up-twice": HalfUpTwice.of,
    "single-rounding": SingleRounding.of,
    "wide-rounding": WideRounding.of,
    "float64": FloatRounding.of,
    "float64-wide": FloatRounding.of_wide,
    "float32-even": FloatRoundingEven.of,
    "float32-even-wrapped": FloatRoundingWrapped.of,
    "exact-half-up": ExactHalfUp.of,
    "short-half-up": ShortHalfUp.of,
}
