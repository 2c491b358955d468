"""Colourings of a picture: a shade and a text for every operator, and a legend that explains the shades."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tflq.face.report.html.charts import LEVELS
from tflq.face.report.numbers import short

#: Largest by smallest value beyond which a scale is logarithmic.
_WIDE = 50.0


@dataclass(frozen=True, slots=True)
class Mark:
    """The shade (a class of the style sheet) and the text of one operator; `value` is the number behind it, if any."""

    shade: str
    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Colouring:
    """One thing to colour operators by: its name with its unit, marks by operator, and the legend (shade, meaning)."""

    name: str
    marks: Mapping[int, Mark]
    legend: tuple[tuple[str, str], ...]


def scale(
    name: str, values: Mapping[int, float], unit: str, *, hue: str = "hot", texts: Mapping[int, str] | None = None
) -> Colouring:
    """Return shades of one hue by magnitude, from 0 (no colour) to the largest. All infinite values share one shade.

    Args:
        name: What the numbers are, as in "largest difference".
        values: By operator; at least 0.
        unit: Of the numbers, "" where they have none.
        hue: "hot" where more is worse, "cool" where it is only more.
        texts: A box's text, if it is not the number and its unit.
    """
    said = texts or {}
    finite = [v for v in values.values() if 0 < v < math.inf]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    logarithmic = low > 0 and high / low > _WIDE

    def level(value: float) -> int:
        if not value or math.isnan(value):
            return 0
        if value >= high or high == low:
            return LEVELS
        share = math.log(value / low) / math.log(high / low) if logarithmic else value / high
        return min(LEVELS, 1 + int(share * LEVELS))

    def bound(number: int) -> float:
        share = number / LEVELS
        return low * (high / low) ** share if logarithmic else high * share

    def measured(value: float) -> str:
        return f"{short(value)} {unit}".rstrip()

    marks = {
        op: Mark(f"{hue}{level(v)}" if level(v) else "clear", said.get(op, measured(v)), v) for op, v in values.items()
    }
    legend = [("clear", measured(0))] if any(not v for v in values.values()) else []
    if len(set(finite)) == 1:
        legend.append((f"{hue}{LEVELS}", measured(high)))
    elif finite:
        legend += [(f"{hue}{n}", f"to {measured(bound(n))}") for n in range(1, LEVELS + 1)]
    return Colouring(f"{name}, {unit}" if unit else name, marks, tuple(legend))


def ladder(
    name: str, values: Mapping[int, float], unit: str, bounds: Sequence[float], texts: Mapping[int, str]
) -> Colouring:
    """Return shades by fixed bounds, so that pages can be compared: the fullest below the first, none from the last on.

    Args:
        name: What the numbers are.
        values: By operator; less is worse.
        unit: Of the numbers.
        bounds: LEVELS numbers, ascending.
        texts: Texts of the boxes.
    """
    shades = [*(f"hot{LEVELS - n}" for n in range(LEVELS)), "clear"]
    said = [f"below {bounds[0]:g} {unit}"]
    said += [f"{low:g} to {high:g} {unit}" for low, high in pairwise(bounds)]
    said += [f"{bounds[-1]:g} {unit} and more"]
    marks = {op: Mark(shades[bisect_right(bounds, value)], texts[op], value) for op, value in values.items()}
    return Colouring(f"{name}, {unit}", marks, tuple(zip(shades, said, strict=True)))


def states(name: str, values: Mapping[int, tuple[str, str]]) -> Colouring:
    """Return a colouring by named states: values are (shade, text) by operator; the legend has those that occur."""
    legend = dict.fromkeys(values.values())
    return Colouring(name, {op: Mark(shade, text) for op, (shade, text) in values.items()}, tuple(legend))
