"""Output stages and their numbers as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflq.comparison.inspection.constants import Stage


def stage_text(stage: Stage, channel: int | None = None) -> str:
    """Return an output stage in one line, for one channel or for all."""

    def pick(values: Sequence[Any]) -> str:
        if channel is None or len(values) <= 1:
            return span(values)
        return number_text(values[channel]) if channel < len(values) else span(values)

    where = f", channel {channel}" if channel is not None and len(stage.real) > 1 else ""
    text = f"{stage.field or 'output'}: {stage.kind}{where}, real {pick(stage.real)}"
    if stage.mantissa:
        text += f", Q31 {pick(stage.mantissa)}, shift {pick(stage.shift)}"
    if stage.zero_point is not None:
        text += f", zero point {stage.zero_point}, clamp [{stage.low}, {stage.high}]"
    return text


def span(values: Sequence[Any]) -> str:
    """Return a value, or the range of several."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return number_text(low) if low == high else f"{number_text(low)} .. {number_text(high)}"


def number_text(value: Any) -> str:
    """Return a number with at most nine digits, enough for any float32."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
