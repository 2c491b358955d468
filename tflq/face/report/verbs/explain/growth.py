"""Blocks about how differences grow in later operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.diagnosis.amplification import Amplification, Spread
from tflq.diagnosis.findings import Findings
from tflq.face.report.blocks import Bar, Bars, Block, Fold, InText, Listing, Operator, Table, Text

#: Later operators that text shows.
_SPREADS = 8


_SPREAD_COLUMNS = (("#", ">"), ("operator", "<"), ("differing", ">"), ("largest", ">"), ("mean", ">"))


_OUTCOME_COLUMNS = (
    ("#", ">"),
    ("later operators that differ", ">"),
    ("largest", ">"),
    ("at", "<"),
    ("arg-max", "<"),
    ("outputs change by", ">"),
)


def growth_blocks(findings: Findings) -> Iterator[Block]:
    """Yield which later operators the first difference reaches, and a row for each difference if there are several."""
    growth = findings.amplification
    if growth is not None:
        yield from _spreads(growth)
        yield Listing(list(choice_texts(growth)))
    if len(findings.growths) > 1:
        yield Text(f"{_outcome_title(findings.growths, len(findings.differing))}:")
        yield Table(_OUTCOME_COLUMNS, list(map(_outcome_row, findings.growths)), indent=1)
    if findings.noise and len(findings.noise) < len(findings.differing):
        yield Text(f"noise of floats, below the others: operators {', '.join(str(o.index) for o in findings.noise)}")


def _spreads(growth: Amplification) -> Iterator[Block]:
    if growth.reason:
        yield Text(f"How it grows: not computed, {growth.reason}", "warning")
    if not growth.spreads:
        return
    if not growth.reason:
        head = Text(f"How operator {growth.index}'s difference grows, all else being equal:")
        yield InText([head, Table(_SPREAD_COLUMNS, list(map(_spread_row, _most_important(growth.reached))), indent=1)])
    bars = [
        Bar(Operator(s.index, s.op), s.difference.largest, f"{s.difference.largest:,} {s.difference.unit}")
        for s in growth.spreads
        if growth.reached
    ]
    yield Bars("later operator", "largest difference, all else being equal", bars)
    every = Table(_SPREAD_COLUMNS, list(map(_spread_row, growth.spreads)))
    yield Fold(f"{len(growth.spreads)} later operators", [every])


def _most_important(reached: Sequence[Spread]) -> Sequence[Spread]:
    """Return the operators that it reaches first, the one where it is largest, and the last ones."""
    if len(reached) <= _SPREADS:
        return reached
    half = _SPREADS // 2
    worst = max(reached[half:-half], key=lambda s: s.difference.largest, default=reached[half])
    return [*reached[:half], worst, *reached[-half:]]


def _spread_row(spread: Spread) -> list[str]:
    """Return the index, operator, differing elements of all, largest difference, and mean over those that differ."""
    d = spread.difference
    counts = f"{d.differing:,} of {d.elements:,}"
    return [str(spread.index), spread.op, counts, f"{d.largest:,} {d.unit}", f"{d.bias:+.3f}"]


def _outcome_title(growths: Sequence[Amplification], differing: int) -> str:
    """Return the table's title: how many of the differing operators it covers."""
    some = f" ({len(growths)} of {differing})" if len(growths) < differing else ""
    return f"Result of each difference alone, the worst first{some}"


def _outcome_row(growth: Amplification) -> list[str]:
    """Return index, operators reached, the largest difference and its operator, arg-max, and change of the outputs."""
    if growth.reason:
        return [str(growth.index), "", "", f"not computed, {growth.reason}", "", ""]
    farthest = growth.farthest
    largest = "" if farthest is None else f"{farthest.difference.largest:,} {farthest.difference.unit}"
    place = "" if farthest is None else f"{farthest.index} {farthest.op}"
    chosen = ("flips" if any(c.flipped for c in growth.choices) else "stays") if growth.choices else ""
    reached = f"{len(growth.reached):,} of {len(growth.spreads):,}"
    return [str(growth.index), reached, largest, place, chosen, f"{growth.effect:.2g}"]


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
