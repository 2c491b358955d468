"""How differences grow behind the operators that made them, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.diagnosis.amplification import Amplification, Spread
from tflq.report.render.line import Line
from tflq.report.render.text import table

#: Operators downstream that are shown.
_SPREADS = 8


SPREAD_COLUMNS = (("#", ">"), ("operator", "<"), ("differing", ">"), ("largest", ">"), ("mean", ">"))


OUTCOME_COLUMNS = (("#", ">"), ("later operators that differ", ">"), ("largest", ">"), ("at", "<"), ("arg-max", "<"))


def growth_lines(growth: Amplification) -> Iterator[Line]:
    """Yield which later operators one operator's difference reaches, and whether it changes the outputs' arg-max."""
    if growth.reason:
        yield Line(f"How it grows: not computed, {growth.reason}", "warning")
    elif growth.spreads:
        yield Line(f"How operator {growth.index}'s difference grows, all else being equal:")
        yield from _indented(table(SPREAD_COLUMNS, map(spread_row, _telling(growth.reached))))
    for text in choice_texts(growth):
        yield Line(f"  {text}")


def outcome_lines(growths: Sequence[Amplification], differing: int) -> Iterator[Line]:
    """Yield a row for each of several operators' differences; nothing for one, which `growth_lines` reports."""
    if len(growths) > 1:
        yield Line(f"{outcome_title(growths, differing)}:")
        yield from _indented(table(OUTCOME_COLUMNS, map(outcome_row, growths)))


def _telling(reached: Sequence[Spread]) -> Sequence[Spread]:
    """The operators where it arrives first, where it is largest, and the last ones."""
    if len(reached) <= _SPREADS:
        return reached
    half = _SPREADS // 2
    worst = max(reached[half:-half], key=lambda s: s.difference.largest, default=reached[half])
    return [*reached[:half], worst, *reached[-half:]]


def spread_row(spread: Spread) -> list[str]:
    """Index, operator, differing elements of all, largest difference, mean over those that differ."""
    d = spread.difference
    counts = f"{d.differing:,} of {d.elements:,}"
    return [str(spread.index), spread.op, counts, f"{d.largest:,} {d.unit}", f"{d.bias:+.3f}"]


def outcome_title(growths: Sequence[Amplification], differing: int) -> str:
    """Return the table's title: how many of the differing operators it covers."""
    some = f" (the first {len(growths)} of {differing})" if len(growths) < differing else ""
    return f"What comes of each difference, alone{some}"


def outcome_row(growth: Amplification) -> list[str]:
    """Index, how many later operators it reaches, how large it becomes and where, and whether an arg-max flips."""
    if growth.reason:
        return [str(growth.index), "", "", f"not computed, {growth.reason}", ""]
    farthest = growth.farthest
    largest = "" if farthest is None else f"{farthest.difference.largest:,} {farthest.difference.unit}"
    place = "" if farthest is None else f"{farthest.index} {farthest.op}"
    chosen = ("flips" if any(c.flipped for c in growth.choices) else "stays") if growth.choices else ""
    return [str(growth.index), f"{len(growth.reached):,} of {len(growth.spreads):,}", largest, place, chosen]


def choice_texts(growth: Amplification) -> Iterator[str]:
    """Yield whether the difference reaches a later operator, and how many arg-max decisions it changes."""
    if growth.spreads and not growth.reached:
        yield "nothing of it arrives at any later operator"
    for choice in growth.choices:
        if choice.first is None:
            yield f"arg-max of output tensor {choice.tensor}: stays"
        else:
            row, before, after = choice.first
            yield (
                f"arg-max of output tensor {choice.tensor}: flips in {choice.flipped:,} of {choice.rows:,} rows, "
                f"first in row {row} from {before} to {after}"
            )


def _indented(lines: Iterator[Line]) -> Iterator[Line]:
    return (Line(f"  {text}", style) for text, style in lines)
