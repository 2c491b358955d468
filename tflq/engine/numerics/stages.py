"""Output stages, their steps in words, and as a micro-kernel does them.

An output stage worked out for one accumulator, in integers that can be read: every rounding with its result.

The compiled loops inline the same named functions, which are called one by one here. The last step's value is the
stage's or the pipeline's own result.

The roundings of output stages as steps that a micro-kernel can do on its sums in registers.

A step names the function that defines it, on scalars, and the vector code that does the same. Steps are exact under one
condition, which the stages check: no sum with its bias reaches 2**30 in magnitude, left shift
included. Then nothing wraps or saturates on the way.

Output stages: how an integer accumulator becomes codes of the output. Values, so that a report can print them.

A *stage* scales: accumulator LSB -> output LSB, with its roundings. A *pipeline* is a stage, then the zero point, then
the clamp, then the narrow type, in one compiled pass. Multipliers are per tensor (length 1) or per channel (length C,
along the last axis of the accumulator). The stages of runtimes are in tflq/engine/numerics/stage_roundings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.rounding import (
    clamp,
    divide_by_pot_half_away,
    divide_by_pot_half_up,
    float_to_int32,
    round_half_away,
    saturating_rounding_doubling_high_mul,
    wrap_int32,
)
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class WorkedStep:
    """One value between operands and output code: the operation, its result, and the formula in numbers."""

    name: str
    value: int | float
    how: str = ""


def clamp_step(value: int, low: int, high: int) -> WorkedStep:
    """Clamp a value to [low, high]."""
    return WorkedStep("clamp", int(clamp(value, low, high)), f"to {low} .. {high}")


def wrap(value: int) -> int:
    """Wrap a value modulo 2**32, as an int32 register keeps it."""
    return (value + 2**31) % 2**32 - 2**31


def wrap_step(total: int) -> Iterator[WorkedStep]:
    """Yield a step that wraps a total, if an int32 register cannot hold it."""
    if wrap(total) != total:
        yield WorkedStep("wrapped to 32 bits", int(wrap_int32(total)), f"{total} modulo 2^32")


def half_up_step(name: str, value: int, exponent: int, formula: str = "") -> WorkedStep:
    """Divide a value by 2**exponent, half up."""
    how = f"{formula or value} / 2^{exponent} = {value / 2**exponent!r}"
    return WorkedStep(name, int(divide_by_pot_half_up(value, exponent)), how)


def double_rounding_steps(total: int, mantissa: int, shift: int) -> list[WorkedStep]:
    """Return the steps of MultiplyByQuantizedMultiplier on one int32: the high product half up, then the division half
    away.
    """
    steps, value, exponent = high_product_steps(total, mantissa, shift)
    if exponent:
        divided = int(divide_by_pot_half_away(value, exponent))
        how = f"{value} / 2^{exponent} = {value / 2**exponent!r}"
        steps.append(WorkedStep("divided by a power of two, half away from zero", divided, how))
    return steps


def high_product_steps(total: int, mantissa: int, shift: int) -> tuple[list[WorkedStep], int, int]:
    """Return the steps up to the doubling high product, its value, and the power of two still to divide by."""
    steps, sum32 = list(wrap_step(total)), wrap(total)
    if shift > 0:
        left = shift & 31
        shifted = wrap(sum32 << left)
        steps.append(WorkedStep("shifted left", shifted, f"{sum32} << {left}"))
        sum32 = shifted
    value = int(saturating_rounding_doubling_high_mul(sum32, mantissa))
    how = f"{sum32} * {mantissa} / 2^31 = {sum32 * mantissa / 2**31!r}"
    return [*steps, WorkedStep("multiplied, half up", value, how)], value, max(-shift, 0)


def entry(values: Any, channel: int) -> Any:
    """Return one channel's entry of constants that are per tensor or per channel, as a Python number."""
    return values[channel if len(values) > 1 else 0].item()


#: Sums below this magnitude, bias and left shift included, are scaled without any wrap.
LIMIT = 2**30


@dataclass(frozen=True, slots=True)
class VectorStep:
    """One rounding: its definition on scalars, and the name of its vector code in microkernels.vectors.Vectors.

    Both take the value and the constants of its channel. `types` are those of the constants, in order. Machine code on
    disk is found by the repr of a step, so the repr must be the same in every process.
    """

    name: str
    types: tuple[str, ...]
    define: Callable[..., Any] = field(repr=False)


def _shift_left(x: Int, amount: Int) -> Int:
    return wrap_int32(np.int64(x) << np.int64(amount))


def _divide_half_away(x: Int, half: Int, below: Int, exponent: Int) -> Int:
    """Divide half away from zero if `below` is -1, half up if it is 0."""
    return (divide_by_pot_half_away if below else divide_by_pot_half_up)(np.int64(x), np.int64(exponent))


def _divide_all_half_away(x: Int, half: Int, exponent: Int) -> Int:
    return divide_by_pot_half_away(np.int64(x), np.int64(exponent))


def _once_half_up(x: Int, mantissa: Int, amount: Int) -> Int:
    return wrap_int32(divide_by_pot_half_up(np.int64(x) * np.int64(mantissa), np.int64(amount)))


def _float64_half_away(x: Int, real: Real) -> Int:
    return float_to_int32(round_half_away(np.float64(x) * np.float64(real)))


def _float32_half_even(x: Int, real: Real) -> Int:
    product = np.float32(np.float32(x) * np.float32(real))
    return np.int64(np.rint(min(max(product, np.float32(-(2.0**21))), np.float32(2.0**21))))


def _short_half_up(x: Int, half: Int, exponent: Int, mantissa: Int) -> Int:
    """Scale as ShortHalfUp does: `half` is that of 2**exponent; the mantissa has 15 bits."""
    short = clamp(divide_by_pot_half_up(np.int64(x), np.int64(exponent)), np.int64(-(2**15)), np.int64(2**15 - 1))
    return divide_by_pot_half_up(np.int64(short) * np.int64(mantissa), np.int64(15))


SHIFT_LEFT = VectorStep("shift_left", ("int32",), _shift_left)
HIGH_HALF_UP = VectorStep("high_half_up", ("int32",), saturating_rounding_doubling_high_mul)
DIVIDE_HALF_AWAY = VectorStep("divide_half_away", ("int32", "int32", "int32"), _divide_half_away)
DIVIDE_ALL_HALF_AWAY = VectorStep("divide_all_half_away", ("int32", "int32"), _divide_all_half_away)
ONCE_HALF_UP = VectorStep("once_half_up", ("int32", "int32"), _once_half_up)
SHORT_HALF_UP = VectorStep("short_half_up", ("int32", "int32", "int32"), _short_half_up)
FLOAT64_HALF_AWAY = VectorStep("float64_half_away", ("float64",), _float64_half_away)
FLOAT32_HALF_EVEN = VectorStep("float32_half_even", ("float32",), _float32_half_even)


@dataclass(frozen=True, slots=True, eq=False)
class VectorScaling:
    """The steps of a stage, and their constants, each of length 1 or C, in order."""

    steps: tuple[VectorStep, ...]
    constants: tuple[Array, ...]


def as_int32(*values: Array) -> tuple[Array, ...]:
    """Return constants of steps as int32."""
    return tuple(np.asarray(v).astype(np.int32) for v in values)


Reals = NDArray[np.float64]
Ints32 = NDArray[np.int32]
Ints64 = NDArray[np.int64]
#: Arrays that a loop reads, one value for each channel.
Constants = tuple[Array, ...]

#: No zero point, no limits but those of int32.
AS_INT32 = ZeroPoint(0), Clamp(-(2**31), 2**31 - 1), np.dtype(np.int32)
#: Parameters are repeated up to this length, so that loops are long enough to run at full speed.
_PERIOD = 1024
#: A bias of zeros, as long as any period.
NO_BIAS = np.zeros(_PERIOD, np.int32)


class OutputStage:
    """A scaling of accumulators with exact semantics: everything about one rounding.

    `real` are the real multipliers that it represents, float64, length 1 or C. `words` describe its rounding.
    """

    __slots__ = ()
    words: ClassVar[str] = "rounds otherwise"
    real: Reals

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale `accumulator` (int32 or int64, channels last). The result is not clamped: it wraps as int32 does."""
        return OutputPipeline(self, *AS_INT32)(accumulator)

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Compute out[r, c] = clamp(scale(accumulator[r, c] + bias[c]) + zero_point). All 2-D, rows by channels.

        `bias` has length 1 or C, or is `repeat`, which is fastest. `out` is contiguous.
        """
        raise NotImplementedError

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Do as `narrow` does for a per-tensor stage without a bias; both arrays are (1, any size)."""
        self.narrow(accumulator, out, NO_BIAS[:1], zero_point, low, high)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the call of `narrow_flat` with these arguments."""
        return partial(self.narrow_flat, accumulator, out, zero_point, low, high)

    def scaling(self, largest: int) -> VectorScaling | None:
        """Return the stage in steps of micro-kernels, for sums of at most that magnitude, bias included.

        Return None if it has no steps, or if they would not be exact.
        """
        return None if largest >= LIMIT else self.vector_steps(largest)

    def vector_steps(self, largest: int) -> VectorScaling | None:
        """Return what `scaling` returns; `largest` is below LIMIT."""
        return None

    def rises(self, largest: Ints64, zero_point: int) -> bool:
        """Return whether codes never fall as the accumulator rises, up to `largest` in magnitude per channel.

        True is a proof: neither the scaled values nor the sum with the zero point wrap.
        """
        return False

    def worked(self, total: int, channel: int) -> list[WorkedStep]:
        """Return the steps on one accumulator, bias included. By default, that is one step."""
        row = np.zeros((1, len(self.real)), np.int64)
        at = channel if len(self.real) > 1 else 0
        row[0, at] = total
        real = entry(self.real, channel)
        return [WorkedStep("scaled", int(self(row)[0, at]), f"{total} * {real!r} = {total * real!r}")]

    def worked_end(self, moved: int, low: int, high: int) -> list[WorkedStep]:
        """Return the steps from a scaled value with its zero point to the code."""
        return [*wrap_step(moved), clamp_step(wrap(moved), low, high)]


#: Builds a stage from real multipliers (float64, scalar or length C).
StageOf = Callable[[ArrayLike], OutputStage]


def as_reals(real: ArrayLike) -> Reals:
    """Convert real multipliers to a stage's form: float64, one-dimensional, read-only."""
    values = np.atleast_1d(np.asarray(real, np.float64))
    values.setflags(write=False)
    return values


def repeat(values: Array) -> Array:
    """Repeat parameters of length 1 or C over one period, at least once. The result is writable and contiguous."""
    return np.tile(values, max(1, _PERIOD // max(1, len(values))))


def over(values: Array, channels: int) -> Array:
    """Return `values` of length 1, one period or C as one per channel."""
    if len(values) == channels:
        return values
    return values[:channels] if len(values) > channels else np.full(channels, values[0], values.dtype)


@writes("out")
@in_pieces(4, accumulator="rc", out="rc", step="bias")
@compiled
def _rows(
    accumulator: Array, out: Array, bias: Array, constants: Constants, flag: Int, zero: Int, low: Int, high: Int
) -> None:
    """Compute the codes of accumulators by `code_of`, the code of one accumulator with its bias.

    There is one constant per channel, or constants repeat so that several rows are one run. Zero point and limits are
    LSB of the output. The caller guarantees: `out` has the shape of `accumulator`; the constants have the same length,
    and `bias` that length at least.
    """
    rows, columns = accumulator.shape
    period, is_short = constants[0].size, accumulator.itemsize <= 4
    for r in range(rows):
        for start in range(0, columns, period):
            source, codes = accumulator[r, start : start + period], out[r, start : start + period]
            for k in range(source.size):
                codes[k] = code_of(source[k], bias[k], constants, k, is_short, flag, zero, low, high)


@compiled
def code_of(
    value: Int, bias: Int, constants: Constants, k: Int, is_short: bool, flag: Int, zero: Int, low: Int, high: Int
) -> Int:
    """Return the code of one accumulator, unscaled; stages bind a function of their own in its place.

    `k` is the position of its constants, `is_short` is true for accumulators of 32 bits, int32 or whole float32, and
    `flag` is the stage's own. The caller guarantees: the constants are longer than `k`.
    """
    return wrap_int32(np.int64(value) + np.int64(bias))


def loop(code: Compiled[..., Any]) -> Compiled[..., None]:
    """Return the loop of a stage whose codes are those of `code`, a function as `code_of`."""
    return _rows.bind(code_of=code)


@dataclass(frozen=True, slots=True, eq=False)
class LoopedStage(OutputStage):
    """A stage that one compiled loop computes, with constants of each channel."""

    real: Reals
    period: tuple[Array, ...] = field(repr=False)  # the loop's constants, repeated
    flag: int = field(repr=False)  # the loop's flag

    rows: ClassVar[Compiled[..., None]]

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        channels, constants = accumulator.shape[1], self.period
        if len(bias) == len(constants[0]) > channels and accumulator.flags.c_contiguous:  # whole rows in a period
            accumulator, out = accumulator.reshape(1, -1), out.reshape(1, -1)
        else:
            constants, bias = tuple([over(values, channels) for values in constants]), over(bias, channels)
        self.rows(accumulator, out, bias, constants, self.flag, zero_point, low, high)

    def narrow_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> None:
        """Scale, add the zero point and clamp; see OutputStage.narrow_flat."""
        self.rows(accumulator, out, NO_BIAS, self.period, self.flag, zero_point, low, high)

    def bind_flat(self, accumulator: Array, out: Array, zero_point: int, low: int, high: int) -> Callable[[], object]:
        """Bind the loop; see OutputStage.bind_flat."""
        return self.rows.bound(accumulator, out, NO_BIAS, self.period, self.flag, zero_point, low, high)


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

    def worked(self, accumulator: int, bias: int | None = None, channel: int = 0) -> list[WorkedStep]:
        """Return bias, stage, zero point and clamp of one accumulator as steps; the last value is the code."""
        steps, total = [], accumulator
        if bias is not None:
            total += bias
            steps.append(WorkedStep("bias added", total, f"{accumulator} + {bias}"))
        steps += self.stage.worked(total, channel)
        scaled, zero_point = int(steps[-1].value) if steps else total, int(self.zero_point)
        moved = scaled + zero_point
        steps.append(WorkedStep("output zero point added", moved, f"{scaled} + {zero_point}"))
        return [*steps, *self.stage.worked_end(moved, *self.clamp)]


def type_range(dtype: DTypeLike) -> Clamp:
    """Return the smallest and the largest code of an integer type."""
    info = np.iinfo(np.dtype(dtype))
    return Clamp(int(info.min), int(info.max))
