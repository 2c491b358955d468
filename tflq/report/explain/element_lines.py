"""One element worked out in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from tflq.diagnosis.element import ElementTrace, Tap
from tflq.diagnosis.element.steps import Read
from tflq.diagnosis.findings import Worked
from tflq.numerics.steps import Step
from tflq.report.render.line import Line
from tflq.report.render.text import table

#: Taps that are shown; a document has all of them.
SHOWN = 6


def element_lines(worked: Worked, sample: int | None = None) -> Iterator[Line]:
    """Yield the taps, the steps, expected and got, and, if the cause is known, the first step that it changes."""
    trace = worked.trace
    yield Line(f"{element_title(worked, sample)}, under {trace.profile}:", "strong")
    yield from _indented(tap_lines(trace))
    columns = (("step", "<"), ("value", ">"), ("how", "<"))
    yield from _indented(table(columns, ([s.name, number(s.value), s.how] for s in trace.working.steps)))
    if not trace.is_told:
        yield Line("  the steps inside this kernel are not told apart", "faint")
    yield Line(f"  expected {number(trace.expected)}" + ("" if worked.got is None else f", got {number(worked.got)}"))
    parting = parting_steps(worked)
    if parting is not None and worked.other is not None:
        ours, theirs = parting
        yield Line(f"  {worked.other.profile} parts from it at: {_said(theirs)}; {trace.profile}: {_said(ours)}")


def element_title(worked: Worked, sample: int | None) -> str:
    """Which element of which operator, and of which sample where there are several."""
    text = f"Element {list(worked.trace.index)} of operator {worked.index} {worked.trace.op}"
    return text if sample is None else f"{text} in sample {sample}"


def tap_lines(trace: ElementTrace) -> Iterator[Line]:
    """Yield a table of the taps, with the middle left out if there are many."""
    working = trace.working
    if not working.taps:
        return
    left_out = len(working.taps) - SHOWN
    rows = [tap_row(trace, tap) for tap in shortened(working.taps)]
    if left_out > 0:
        rows.insert((SHOWN + 1) // 2, [f"... {left_out:,} more", "", "", "", ""])
    yield from table(TAP_COLUMNS, rows)
    if working.outside:
        yield Line(f"({working.outside:,} taps lie outside the image and add nothing)", "faint")


TAP_COLUMNS = (("input", "<"), ("code - zero point", ">"), ("weight", "<"), ("code - zero point", ">"), ("adds", ">"))


def shortened(taps: Sequence[Tap]) -> list[Tap]:
    """The first taps and the last ones."""
    if len(taps) <= SHOWN:
        return list(taps)
    head = (SHOWN + 1) // 2
    return [*taps[:head], *taps[head - SHOWN :]]


def tap_row(trace: ElementTrace, tap: Tap) -> list[str]:
    """A tap's cells under TAP_COLUMNS."""
    weight = ["", ""] if tap.weight is None else [_place(trace, tap.weight), _centred(tap.weight)]
    return [_place(trace, tap.value), _centred(tap.value), *weight, number(tap.product)]


#: A step of the profile and the one that the cause has in its place.
Pair = tuple[Step | None, Step | None]


def side_by_side(worked: Worked) -> list[Pair]:
    """Pair the profile's steps with the cause's of the same name; unmatched runs are aligned at their ends."""
    ours, theirs = worked.trace.working.steps, () if worked.other is None else worked.other.working.steps
    blocks = SequenceMatcher(None, [s.name for s in ours], [s.name for s in theirs], autojunk=False).get_opcodes()
    return [pair for _, a, b, c, d in blocks for pair in _level(ours[a:b], theirs[c:d])]


def _level(ours: Sequence[Step], theirs: Sequence[Step]) -> list[Pair]:
    """Pad the shorter list at its start, so that both end together."""
    return list(zip_longest(reversed(ours), reversed(theirs)))[::-1]


def parting_steps(worked: Worked) -> tuple[Step, Step] | None:
    """Return the first step in which the profile and the cause differ, as each of them computes it."""
    both = ((ours, theirs) for ours, theirs in side_by_side(worked) if ours is not None and theirs is not None)
    return next(((ours, theirs) for ours, theirs in both if ours.value != theirs.value), None)


def number(value: float | bool) -> str:
    """A value as reports print it: integers with separators, floats in full."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def _said(step: Step) -> str:
    return f"{step.name}, {number(step.value)}"


def _place(trace: ElementTrace, read: Read) -> str:
    return f"input {read.operand} {list(read.place)}"


def _centred(read: Read) -> str:
    if not read.zero_point:
        return number(read.code)
    return f"{number(read.code)} - {read.zero_point} = {number(read.centred)}"


def _indented(lines: Iterator[Line]) -> Iterator[Line]:
    return (Line(f"  {text}", style) for text, style in lines)
