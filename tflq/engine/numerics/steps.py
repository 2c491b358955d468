"""An output stage worked out for one accumulator, in integers that can be read: every rounding with its result.

The compiled loops inline the same named functions, which are called one by one here. The last step's value is the
stage's or the pipeline's own result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from tflq.engine.numerics.block_tail import BlockTail
from tflq.engine.numerics.fixedpoint import saturating_rounding_doubling_high_mul
from tflq.engine.numerics.float32_stages import (
    HIGHEST_INT8,
    LEAST_INT32,
    ExactHalfUp,
    FloatRoundingEven,
    FloatRoundingWrapped,
    ShortHalfUp,
    saturate_int16,
)
from tflq.engine.numerics.float_rounding import FloatRounding
from tflq.engine.numerics.multiplier import reduce_multiplier
from tflq.engine.numerics.rounding import (
    clamp,
    divide_by_pot_half_away,
    divide_by_pot_half_up,
    float_to_int32,
    round_half_away,
    wrap_int32,
)
from tflq.engine.numerics.stages import (
    DoubleRounding,
    HalfUpTwice,
    OutputPipeline,
    SaturatedTwice,
    SingleRounding,
    WideRounding,
)
from tflq.engine.numerics.unscaled import Unscaled

#: Stages that clamp before they convert, so that an added zero point cannot wrap.
_CLAMP_FIRST = (FloatRoundingEven, ExactHalfUp, ShortHalfUp)


@dataclass(frozen=True, slots=True)
class Step:
    """One value between operands and output code: the operation, its result, and the formula in numbers."""

    name: str
    value: int | float
    how: str = ""


def pipeline_steps(pipeline: OutputPipeline, accumulator: int, bias: int | None = None, channel: int = 0) -> list[Step]:
    """Return bias, stage, zero point and clamp of one accumulator as steps; the last value is the code."""
    steps = []
    total = accumulator
    if bias is not None:
        total += bias
        steps.append(Step("bias added", total, f"{accumulator} + {bias}"))
    steps += stage_steps(pipeline.stage, total, channel)
    scaled, zero_point = int(steps[-1].value) if steps else total, int(pipeline.zero_point)
    moved = scaled + zero_point
    steps.append(Step("output zero point added", moved, f"{scaled} + {zero_point}"))
    low, high = pipeline.clamp
    if isinstance(pipeline.stage, FloatRoundingWrapped) and moved < LEAST_INT32:
        high = HIGHEST_INT8
    elif isinstance(pipeline.stage, _CLAMP_FIRST):
        return [*steps, clamp_step(moved, low, high)]
    return [*steps, *_held(moved), clamp_step(wrap(moved), low, high)]


def clamp_step(value: int, low: int, high: int) -> Step:
    """Clamp a value to [low, high]."""
    return Step("clamp", int(clamp(value, low, high)), f"to {low} .. {high}")


def wrap(value: int) -> int:
    """Wrap a value modulo 2**32, as an int32 register keeps it."""
    return (value + 2**31) % 2**32 - 2**31


@singledispatch
def stage_steps(stage: Any, total: int, channel: int) -> list[Step]:
    """Return the steps of a stage on one accumulator, bias included. An unknown stage is one step."""
    row = np.zeros((1, len(stage.real)), np.int64)
    at = channel if len(stage.real) > 1 else 0
    row[0, at] = total
    real = _of(stage.real, channel)
    return [Step("scaled", int(stage(row)[0, at]), f"{total} * {real!r} = {total * real!r}")]


@stage_steps.register
def _(stage: DoubleRounding, total: int, channel: int) -> list[Step]:
    mantissa, shift = _of(stage.mantissa, channel), _of(stage.shift, channel)
    return [_multiplier(stage, channel), *double_rounding_steps(total, mantissa, shift)]


@stage_steps.register
def _(stage: SaturatedTwice, total: int, channel: int) -> list[Step]:
    mantissa, shift = _of(stage.mantissa, channel), _of(stage.shift, channel)
    left = max(shift, 0)
    shifted = int(clamp(wrap(total) << left, -(2**31), 2**31 - 1))
    saturated = [Step("shifted left, saturated", shifted, f"{wrap(total)} << {left}")] if left else []
    return [_multiplier(stage, channel), *saturated, *double_rounding_steps(shifted, mantissa, min(shift, 0))]


@stage_steps.register
def _(stage: FloatRoundingWrapped, total: int, channel: int) -> list[Step]:
    *steps, rounded = stage_steps.dispatch(FloatRoundingEven)(stage, total, channel)
    return [*steps, Step(rounded.name, max(int(rounded.value), int(LEAST_INT32)), rounded.how)]


@stage_steps.register
def _(stage: HalfUpTwice, total: int, channel: int) -> list[Step]:
    steps, value, exponent = _high_product(total, _of(stage.mantissa, channel), _of(stage.shift, channel))
    if exponent:
        steps.append(_shift_half_up("divided by a power of two, half up", value, exponent))
    return [_multiplier(stage, channel), *steps]


@stage_steps.register
def _(stage: SingleRounding, total: int, channel: int) -> list[Step]:
    mantissa, shift = _of(stage.mantissa, channel), _of(stage.shift, channel)
    sum32 = wrap(total)
    rounded = _shift_half_up("multiplied, half up, once", sum32 * mantissa, 31 - shift, f"{sum32} * {mantissa}")
    return [_multiplier(stage, channel), *_held(total), rounded, *_held(int(rounded.value))]


@stage_steps.register
def _(stage: WideRounding, total: int, channel: int) -> list[Step]:
    mantissa, shift = _of(stage.mantissa, channel), _of(stage.shift, channel)
    short = int(reduce_multiplier(mantissa))
    reduced = Step("multiplier reduced to 16 bits", short, f"({mantissa} + 2^15) >> 16")
    rounded = _shift_half_up("multiplied, half up, once", total * short, 15 - shift, f"{total} * {short}")
    return [_multiplier(stage, channel), reduced, rounded, *_held(int(rounded.value))]


@stage_steps.register
def _(stage: FloatRounding, total: int, channel: int) -> list[Step]:
    wrapping = list(_held(total)) if stage.wraps else []
    sum32, real = wrap(total) if stage.wraps else total, _of(stage.real, channel)
    product = float(np.float64(sum32) * np.float64(real))
    whole = int(float_to_int32(round_half_away(product)))
    return [
        *wrapping,
        Step("multiplied in float64", product, f"{sum32} * {real!r}"),
        Step("rounded half away from zero", whole, f"round({product!r})"),
    ]


@stage_steps.register
def _(stage: FloatRoundingEven, total: int, channel: int) -> list[Step]:
    sum32, real = wrap(total), np.float32(_of(stage.real, channel))
    product = np.float32(np.float32(sum32) * real)
    return [
        *_held(total),
        Step("multiplied in float32", float(product), f"{sum32} * {float(real)!r}"),
        Step("rounded half to even", int(np.rint(np.float64(product))), f"rint({float(product)!r})"),
    ]


@stage_steps.register
def _(stage: ExactHalfUp, total: int, channel: int) -> list[Step]:
    mantissa, shift = (_of(values, channel) for values in stage.period)
    sum32 = wrap(total)
    how = f"{sum32} * {mantissa}"
    return [*_held(total), _shift_half_up("multiplied exactly, half up, once", sum32 * mantissa, shift, how)]


@stage_steps.register
def _(stage: ShortHalfUp, total: int, channel: int) -> list[Step]:
    mantissa, left, right = (_of(values, channel) for values in stage.period)
    sum32 = wrap(total)
    short = _shift_half_up("shifted, half up", sum32 << left, right, f"{sum32} << {left}")
    first = int(saturate_int16(int(short.value)))
    product = _shift_half_up("multiplied, half up", first * mantissa, 15, f"{first} * {mantissa}")
    return [
        *_held(total),
        short,
        Step("held in 16 bits", first),
        product,
        Step("held in 16 bits", int(saturate_int16(int(product.value)))),
    ]


@stage_steps.register
def _(stage: BlockTail, total: int, channel: int) -> list[Step]:
    at = len(stage.whole.real)
    if channel < at:
        return stage_steps(stage.whole, total, channel)
    return stage_steps(stage.tail, total, channel - at)


@stage_steps.register
def _(stage: Unscaled, total: int, channel: int) -> list[Step]:
    return list(_held(total))


def _multiplier(stage: Any, channel: int) -> Step:
    """Return the real multiplier, and the form in which it is held."""
    mantissa, shift = _of(stage.mantissa, channel), _of(stage.shift, channel)
    return Step("multiplier", _of(stage.real, channel), f"{mantissa} * 2^{shift - 31}: mantissa Q31, shift {shift}")


def double_rounding_steps(total: int, mantissa: int, shift: int) -> list[Step]:
    """Return the steps of MultiplyByQuantizedMultiplier on one int32: the high product half up, then the division half
    away.
    """
    steps, value, exponent = _high_product(total, mantissa, shift)
    if exponent:
        divided = int(divide_by_pot_half_away(value, exponent))
        how = f"{value} / 2^{exponent} = {value / 2**exponent!r}"
        steps.append(Step("divided by a power of two, half away from zero", divided, how))
    return steps


def _high_product(total: int, mantissa: int, shift: int) -> tuple[list[Step], int, int]:
    """Return the steps up to the doubling high product, its value, and the power of two still to divide by."""
    steps, sum32 = list(_held(total)), wrap(total)
    if shift > 0:
        left = shift & 31
        shifted = wrap(sum32 << left)
        steps.append(Step("shifted left", shifted, f"{sum32} << {left}"))
        sum32 = shifted
    value = int(saturating_rounding_doubling_high_mul(sum32, mantissa))
    how = f"{sum32} * {mantissa} / 2^31 = {sum32 * mantissa / 2**31!r}"
    return [*steps, Step("multiplied, half up", value, how)], value, max(-shift, 0)


def _shift_half_up(name: str, value: int, exponent: int, formula: str = "") -> Step:
    how = f"{formula or value} / 2^{exponent} = {value / 2**exponent!r}"
    return Step(name, int(divide_by_pot_half_up(value, exponent)), how)


def _held(total: int) -> Iterator[Step]:
    """Yield a step that wraps a total, if an int32 register cannot hold it."""
    if wrap(total) != total:
        yield Step("wrapped to 32 bits", int(wrap_int32(total)), f"{total} modulo 2^32")


def _of(values: Any, channel: int) -> Any:
    """Return one channel's entry of constants that are per tensor or per channel, as a Python number."""
    return values[channel if len(values) > 1 else 0].item()
