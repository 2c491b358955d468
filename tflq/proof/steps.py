"""An output stage as a monotone step function of the accumulator, and where its steps are.

If a stage never falls over an interval, its breakpoints define it there: the first accumulators that give each code.
Bisection finds them. The stage's kind, and bounds that exclude every wrap and every conversion beyond int32 in the
interval, show that it never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.families.contraction import Output
from tflq.engine.numerics.block_tail import BlockTail
from tflq.engine.numerics.float32_stages import ExactHalfUp, FloatRoundingEven, FloatRoundingWrapped, ShortHalfUp
from tflq.engine.numerics.float_rounding import FloatRounding
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

Ints = NDArray[np.int64]

#: The excess of a multiplier of 15 bits over the real one.
_SLACK = 1 + 2.0**-12
#: Number of accumulators that are evaluated in one call, and number that fit in a core's second-level cache.
_AT_ONCE, _IN_CACHE = 1 << 20, 1 << 15
#: Limits on accumulators that are evaluated to find the breakpoints of one output, and to compare two one by one.
_MOST_PROBES, _MOST_COMPARED = 1 << 29, 1 << 29
_INT32 = 2**31
#: Number of runs of accumulators with different codes that are kept per channel.
MOST_RUNS = 1 << 14


def codes_of(output: Output, accumulators: Ints) -> Array:
    """Return codes of accumulators (rows, C), without the bias."""
    sums = np.ascontiguousarray(accumulators, output.bias.dtype)
    out = np.empty(sums.shape, output.pipeline.dtype)
    output.into(sums, out)
    return out


def bias_of(output: Output, channels: int) -> Ints:
    """Return one bias per channel; a single one is repeated."""
    bias = output.bias[:channels] if len(output.bias) >= channels else np.broadcast_to(output.bias, channels)
    return bias.astype(np.int64)


def never_falls(output: Output, low: Ints, high: Ints) -> bool:
    """Return whether codes never fall as the accumulator rises from `low` to `high` (per channel, without the bias)."""
    bias = bias_of(output, len(low))
    ends = low + bias, high + bias
    if output.bias.dtype != np.int64 and not all(_fits(e) for e in (low, high, *ends)):
        return False
    largest = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    return _rises(output.pipeline.stage, largest, int(output.pipeline.zero_point))


def _fits(values: Ints) -> bool:
    return bool(np.all(values >= -_INT32) and np.all(values < _INT32))


def _rises(stage: OutputStage, largest: Ints, zero_point: int) -> bool:
    if isinstance(stage, BlockTail):
        at = len(stage.whole.real)
        return _rises(stage.whole, largest[:at], zero_point) and _rises(stage.tail, largest[at:], zero_point)
    rule = _RULES.get(type(stage))
    return rule is not None and rule(stage, largest, zero_point)


def _scale(stage: Any, largest: Ints, zero_point: int) -> bool:
    """Return whether the multiplier is not negative, and scaled values and the zero point stay well inside int32."""
    real = np.broadcast_to(stage.real, largest.shape)
    with np.errstate(all="ignore"):
        return bool(np.all(real >= 0) and np.all(largest * real * _SLACK + abs(zero_point) + 4 < _INT32))


def _fix(stage: Any, largest: Ints, zero_point: int) -> bool:
    """Return whether the fixed-point stage is monotone: shifted sums fit int32 and shifts fit their words."""
    shift = np.broadcast_to(stage.shift.astype(np.int64), largest.shape)
    if np.any(stage.mantissa < 0) or np.any(shift > 30) or np.any(shift < -31):
        return False
    fits = np.all(largest.astype(np.float64) * np.exp2(np.maximum(shift, 0)) < _INT32)
    return bool(fits) and _scale(stage, largest, zero_point)


def _wide(stage: Any, largest: Ints, zero_point: int) -> bool:
    """Return whether the stage for 48-bit sums is monotone: products with the 16-bit mantissa fit 64 bits."""
    shift = stage.shift.astype(np.int64)
    within = np.all(shift <= 14) and np.all(shift > -31) and np.all(stage.mantissa >= 0) and np.all(largest < 2**46)
    return bool(within) and _scale(stage, largest, zero_point)


def _saturating(stage: Any, largest: Ints, zero_point: int) -> bool:
    """Return whether the stage, which clamps scaled values, is monotone: its multiplier is 0 or more."""
    return bool(np.all(stage.real >= 0) and np.all(np.isfinite(stage.real)))


def _wrapped(stage: Any, largest: Ints, zero_point: int) -> bool:
    """Return whether the stage, which wraps below int32 if the zero point is negative, is monotone."""
    return _saturating(stage, largest, zero_point) if zero_point >= 0 else _scale(stage, largest, zero_point)


def _below_256(stage: Any, largest: Ints, zero_point: int) -> bool:
    return _saturating(stage, largest, zero_point) and bool(np.all(stage.real < 256))


_RULES: dict[type, Callable[[Any, Ints, int], bool]] = {
    DoubleRounding: _fix,
    HalfUpTwice: _fix,
    SaturatedTwice: _fix,
    SingleRounding: _fix,
    WideRounding: _wide,
    FloatRounding: _scale,
    FloatRoundingEven: _saturating,
    FloatRoundingWrapped: _wrapped,
    ExactHalfUp: _below_256,
    ShortHalfUp: _below_256,
    Unscaled: lambda stage, largest, zero_point: bool(np.all(largest < _INT32)),
}


def breakpoints(output: Output, low: Ints, high: Ints, limits: tuple[int, int] | None = None) -> Ints | None:
    """Return the first accumulator from `low` to `high` that gives at least each code, (codes, C), else `high` + 1.

    Rows are the codes above the lowest of `limits`, by default the clamp, up to its highest. None if that would take
    too long. Codes must never fall between `low` and `high`.
    """
    first, last = limits or output.pipeline.clamp
    steps = int(np.max(high - low, initial=0)).bit_length() + 1
    if (last - first) * low.size * steps > _MOST_PROBES:
        return None
    codes = np.arange(first + 1, last + 1, dtype=np.int64)
    rows = max(1, _IN_CACHE // max(1, low.size))
    parts = [_bisect(output, codes[at : at + rows], low, high) for at in range(0, codes.size, rows)]
    return np.concatenate(parts) if parts else np.empty((0, low.size), np.int64)


def _bisect(output: Output, codes: Ints, low: Ints, high: Ints) -> Ints:
    left = np.broadcast_to(low, (codes.size, low.size)).copy()
    right = np.broadcast_to(high + 1, left.shape).copy()
    while np.any(left < right):
        middle = (left + right) >> 1
        reached = codes_of(output, np.minimum(middle, high)) >= codes[:, None]
        reached |= middle > high
        right = np.where(reached, middle, right)
        left = np.where(reached, left, np.minimum(middle + 1, right))
    return left


def compared(first: Output, second: Output, low: Ints, high: Ints) -> dict[int, Ints] | None:
    """Return the accumulators for which the codes of two outputs differ, by channel, as rows (from, below).

    They are evaluated one by one; the result is None if that would take too long. A channel with more than `MOST_RUNS`
    rows may lack some.
    """
    length = int(np.max(high - low, initial=0)) + 1
    if length * low.size > _MOST_COMPARED:
        return None
    rows = max(1, _AT_ONCE // max(1, low.size))
    runs: dict[int, list[Ints]] = {}
    for start in range(0, length, rows):
        offsets = np.arange(start, min(start + rows, length), dtype=np.int64)[:, None]
        at = np.minimum(low + offsets, high)
        apart = (codes_of(first, at) != codes_of(second, at)) & (low + offsets <= high)
        for channel in np.flatnonzero(apart.any(axis=0)).tolist():
            edges = np.flatnonzero(np.diff(apart[:, channel], prepend=False, append=False)).reshape(-1, 2)
            runs.setdefault(channel, []).append(edges[: MOST_RUNS + 1] + int(low[channel]) + start)
    return {channel: np.concatenate(parts) for channel, parts in runs.items()}
