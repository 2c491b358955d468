"""The roundings of output stages as steps that a micro-kernel can do on its sums in registers.

A step names the function that defines it, on scalars, and the vector code that does the same; `Scaling.of` returns the
steps of a stage, with their constants. Steps are exact under one condition, which `Scaling.of` checks: no sum with its
bias reaches 2**30 in magnitude, left shift included. Then nothing wraps or saturates on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real
from tflq.engine.numerics.block_tail import BlockTail
from tflq.engine.numerics.fixedpoint import saturating_rounding_doubling_high_mul
from tflq.engine.numerics.float32_stages import (
    ExactHalfUp,
    FloatRoundingEven,
    FloatRoundingWrapped,
    ShortHalfUp,
    saturate_int16,
)
from tflq.engine.numerics.float_rounding import FloatRounding
from tflq.engine.numerics.multiplier import reduce_multiplier, rounding_twice
from tflq.engine.numerics.rounding import (
    divide_by_pot_half_away,
    divide_by_pot_half_up,
    float_to_int32,
    round_half_away,
    wrap_int32,
)
from tflq.engine.numerics.stages import (
    DoubleRounding,
    HalfUpTwice,
    OutputStage,
    SaturatedTwice,
    SingleRounding,
    WideRounding,
)
from tflq.engine.numerics.unscaled import Unscaled
from tflq.typing import Array

#: Sums below this magnitude, bias and left shift included, are scaled without any wrap.
LIMIT = 2**30


@dataclass(frozen=True, slots=True)
class Step:
    """One rounding: its definition on scalars, and the name of its vector code in vectors.Vectors.

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
    short = saturate_int16(divide_by_pot_half_up(np.int64(x), np.int64(exponent)))
    return divide_by_pot_half_up(np.int64(short) * np.int64(mantissa), np.int64(15))


SHIFT_LEFT = Step("shift_left", ("int32",), _shift_left)
HIGH_HALF_UP = Step("high_half_up", ("int32",), saturating_rounding_doubling_high_mul)
DIVIDE_HALF_AWAY = Step("divide_half_away", ("int32", "int32", "int32"), _divide_half_away)
DIVIDE_ALL_HALF_AWAY = Step("divide_all_half_away", ("int32", "int32"), _divide_all_half_away)
ONCE_HALF_UP = Step("once_half_up", ("int32", "int32"), _once_half_up)
SHORT_HALF_UP = Step("short_half_up", ("int32", "int32", "int32"), _short_half_up)
FLOAT64_HALF_AWAY = Step("float64_half_away", ("float64",), _float64_half_away)
FLOAT32_HALF_EVEN = Step("float32_half_even", ("float32",), _float32_half_even)


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """The steps of a stage, and their constants, each of length 1 or C, in order."""

    steps: tuple[Step, ...]
    constants: tuple[Array, ...]

    @classmethod
    def of(cls, stage: OutputStage, largest: int) -> Scaling | None:
        """Return `stage` in steps, for sums of at most that magnitude, bias included, which makes wrapping irrelevant.

        Return None if a stage has no steps, or if they would not be exact.
        """
        make = _SCALINGS.get(type(stage))
        return None if make is None or largest >= LIMIT else make(stage, largest)


def _twice(stage: Any, largest: int) -> Scaling | None:
    """Return the steps of DoubleRounding or HalfUpTwice, which differ in the correction of negative products."""
    left, right = np.maximum(stage.shift, 0), np.maximum(-stage.shift, 0)
    if stage.mantissa.min() < 0 or right.max() > 31 or left.max() > 30 or largest << int(left.max()) >= LIMIT:
        return None
    half, _, _ = rounding_twice(right.astype(np.int64))
    below = stage.constants(stage.mantissa, stage.shift)[3] >> 31
    step, divide = DIVIDE_HALF_AWAY, _int32(half >> 31, below, right)
    if np.all(below == -1):
        step, divide = DIVIDE_ALL_HALF_AWAY, _int32(half >> 31, right)
    if not left.any():
        return Scaling((HIGH_HALF_UP, step), (*_int32(stage.mantissa), *divide))
    return Scaling((SHIFT_LEFT, HIGH_HALF_UP, step), (*_int32(left, stage.mantissa), *divide))


def _once(stage: Any, largest: int) -> Scaling | None:
    """Return the steps of SingleRounding: product and shift in 64 bits, the result cut to 32."""
    if stage.mantissa.min() < 0 or stage.shift.max() > 30 or stage.shift.min() < -31:
        return None
    return Scaling((ONCE_HALF_UP,), _int32(stage.mantissa, 31 - stage.shift))


def _exact(stage: ExactHalfUp, largest: int) -> Scaling | None:
    mantissa, amount = stage.constants(stage.real.astype(np.float32))
    if not np.all(np.isfinite(stage.real)) or largest * float(np.abs(stage.real).max()) >= LIMIT:
        return None
    return Scaling((ONCE_HALF_UP,), _int32(mantissa, amount))


def _short(stage: ShortHalfUp, largest: int) -> Scaling | None:
    """Return the steps of ShortHalfUp, whose second product cannot leave int16: its factor is below 1."""
    mantissa, left, right = stage.constants(stage.real.astype(np.float32))
    if not np.all(np.isfinite(stage.real)) or right.max() > 31 or largest << int(left.max()) >= LIMIT:
        return None
    constants = _int32((1 << right) >> 1, right, mantissa)
    if not left.any():
        return Scaling((SHORT_HALF_UP,), constants)
    return Scaling((SHIFT_LEFT, SHORT_HALF_UP), (*_int32(left), *constants))


def _wide(stage: WideRounding, largest: int) -> Scaling | None:
    """Return the steps of WideRounding: the mantissa is reduced to 16 bits."""
    if stage.mantissa.min() < 0 or stage.shift.max() > 15 or stage.shift.min() < -31:
        return None
    reduced = np.array([reduce_multiplier(m) for m in stage.mantissa.tolist()])
    return Scaling((ONCE_HALF_UP,), _int32(reduced, 15 - stage.shift))


def _float64(stage: FloatRounding, largest: int) -> Scaling | None:
    if not np.all(np.isfinite(stage.real)) or largest * float(np.abs(stage.real).max()) >= LIMIT:
        return None
    return Scaling((FLOAT64_HALF_AWAY,), (stage.real,))


def _float32(stage: FloatRoundingEven, largest: int) -> Scaling | None:
    real = stage.real.astype(np.float32)
    return Scaling((FLOAT32_HALF_EVEN,), (real,)) if np.all(np.isfinite(real)) else None


def _float32_wrapped(stage: FloatRoundingWrapped, largest: int) -> Scaling | None:
    return _float32(stage, largest) if largest * float(np.abs(stage.real).max()) < LIMIT else None


def _unscale(stage: Unscaled, largest: int) -> Scaling | None:
    return Scaling((), ())


def _in_blocks(stage: BlockTail, largest: int) -> Scaling | None:
    """Return the steps of two stages side by side, if both have the same steps."""
    counts = len(stage.whole.real), len(stage.tail.real)
    whole, tail = Scaling.of(stage.whole, largest), Scaling.of(stage.tail, largest)
    if whole is None or tail is None or whole.steps != tail.steps:
        return None
    pairs = zip(whole.constants, tail.constants, strict=True)
    each = [[np.broadcast_to(part, count) for part, count in zip(pair, counts, strict=True)] for pair in pairs]
    return Scaling(whole.steps, tuple(map(np.concatenate, each)))


def _int32(*values: Array) -> tuple[Array, ...]:
    return tuple(np.asarray(v).astype(np.int32) for v in values)


#: By type of stage. The loop of any other stage scales sums in memory.
_SCALINGS: Mapping[type, Callable[[Any, int], Scaling | None]] = {
    DoubleRounding: _twice,
    HalfUpTwice: _twice,
    SaturatedTwice: _twice,
    SingleRounding: _once,
    WideRounding: _wide,
    ExactHalfUp: _exact,
    ShortHalfUp: _short,
    FloatRounding: _float64,
    FloatRoundingEven: _float32,
    FloatRoundingWrapped: _float32_wrapped,
    Unscaled: _unscale,
    BlockTail: _in_blocks,
}
