"""The report of one element, worked out step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from tflq.diagnosis.element import ElementTrace, Tap
from tflq.diagnosis.element.contractions import Read
from tflq.diagnosis.findings import Worked
from tflq.engine.numerics.stages import WorkedStep
from tflq.face.report.blocks import Block, CodeBlock, Inline, InText, OnPage, Report, Section, TableBlock, Text

#: Taps that text and pages show; a document has all of them.
_SHOWN, _MOST_TAPS = 6, 2000


def element_report(worked: Worked) -> Report:
    """Build the report of one element of a profile's own run."""
    title = f"{_title(worked, None)}, under {worked.trace.profile}"
    return Report("explain", [element_blocks(worked)], title=title, headline=title)


def element_blocks(worked: Worked, sample: int | None = None) -> Section:
    """Return the taps, the steps, expected and got, and, if the cause is known, the first step that it changes."""
    title, trace = _title(worked, sample), worked.trace
    columns = (("step", "<"), ("value", ">"), ("how", "<"))
    steps = [[s.name, _number(s.value), s.how] for s in trace.working.steps]
    blocks: list[Block] = [
        InText([Text(f"{title}, under {trace.profile}:", "strong"), *_shorten_taps(trace)]),
        OnPage(lambda _view: [*_all_taps(trace), _steps(worked)]),
        InText([TableBlock(columns, steps, indent=1)]),
    ]
    if not trace.is_told:
        blocks.append(Text("the steps inside this kernel are not distinguished", "faint", indent=1))
    got = "" if worked.got is None else f", got {_number(worked.got)}"
    blocks.append(Text(f"expected {_number(trace.expected)}{got}", indent=1))
    parting = parting_steps(worked)
    if parting is not None and worked.other is not None:
        ours, theirs = parting
        text = f"{worked.other.profile} parts from it at: {_said(theirs)}; {trace.profile}: {_said(ours)}"
        blocks.append(Text(text, indent=1))
    return Section("element", title, blocks)


def _title(worked: Worked, sample: int | None) -> str:
    text = f"Element {list(worked.trace.index)} of operator {worked.index} {worked.trace.op}"
    return text if sample is None else f"{text} in sample {sample}"


def _shorten_taps(trace: ElementTrace) -> Iterator[Block]:
    """Yield a table of the first and the last taps."""
    taps = trace.working.taps
    if not taps:
        return
    head, left_out = (_SHOWN + 1) // 2, len(taps) - _SHOWN
    shown = [*taps[:head], *taps[head - _SHOWN :]] if left_out > 0 else taps
    rows = [_tap_row(tap) for tap in shown]
    if left_out > 0:
        rows.insert(head, [f"... {left_out:,} more", "", "", "", ""])
    yield TableBlock(_TAP_COLUMNS, rows, indent=1)
    if trace.working.outside:
        yield Text(f"({trace.working.outside:,} taps lie outside the image and add nothing)", "faint", indent=1)


def _all_taps(trace: ElementTrace) -> Iterator[Block]:
    """Yield a folded table of all taps, for pages."""
    working = trace.working
    outside = f", {working.outside:,} outside the image" if working.outside else ""
    rows = [_tap_row(tap) for tap in working.taps[:_MOST_TAPS]]
    yield TableBlock(_TAP_COLUMNS, rows, fold=f"{len(working.taps):,} taps{outside}")


def _steps(worked: Worked) -> TableBlock:
    """Return the profile's steps and the cause's side by side; rows in which they differ are marked."""
    others = [] if worked.other is None else [(worked.other.profile, ">")]
    columns = [("step", "<"), (worked.trace.profile, ">"), *others, ("how", "<")]
    rows: list[list[Inline]] = []
    styles = []
    for pair in side_by_side(worked):
        there = [step for step in pair if step is not None]
        values = ["" if step is None else _number(step.value) for step in pair]
        name = "; ".join(dict.fromkeys(step.name for step in there))
        shown = values[: 1 if worked.other is None else 2]
        rows.append([name, *map(CodeBlock, shown), CodeBlock(there[0].how)])
        styles.append("parts" if len(there) == 2 and values[0] != values[1] else "")
    return TableBlock(columns, rows, styles=styles)


_TAP_COLUMNS = (("input", "<"), ("code - zero point", ">"), ("weight", "<"), ("code - zero point", ">"), ("adds", ">"))


def _tap_row(tap: Tap) -> list[str]:
    """Return a tap's cells under _TAP_COLUMNS."""
    weight = ["", ""] if tap.weight is None else [_place(tap.weight), _centred(tap.weight)]
    return [_place(tap.value), _centred(tap.value), *weight, _number(tap.product)]


#: A step of the profile and the one that the cause has in its place.
Pair = tuple[WorkedStep | None, WorkedStep | None]


def side_by_side(worked: Worked) -> list[Pair]:
    """Pair the profile's steps with the cause's of the same name; unmatched runs are aligned at their ends."""
    ours, theirs = worked.trace.working.steps, () if worked.other is None else worked.other.working.steps
    blocks = SequenceMatcher(None, [s.name for s in ours], [s.name for s in theirs], autojunk=False).get_opcodes()
    return [pair for _, a, b, c, d in blocks for pair in _level(ours[a:b], theirs[c:d])]


def _level(ours: Sequence[WorkedStep], theirs: Sequence[WorkedStep]) -> list[Pair]:
    """Pad the shorter list at its start, so that both end together."""
    return list(zip_longest(reversed(ours), reversed(theirs)))[::-1]


def parting_steps(worked: Worked) -> tuple[WorkedStep, WorkedStep] | None:
    """Return the first step in which the profile and the cause differ, as each of them computes it."""
    both = ((ours, theirs) for ours, theirs in side_by_side(worked) if ours is not None and theirs is not None)
    return next(((ours, theirs) for ours, theirs in both if ours.value != theirs.value), None)


def _number(value: float | bool) -> str:
    """Return a value as text: integers with separators, floats in full."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def _said(step: WorkedStep) -> str:
    return f"{step.name}, {_number(step.value)}"


def _place(read: Read) -> str:
    return f"input {read.operand} {list(read.place)}"


def _centred(read: Read) -> str:
    if not read.zero_point:
        return _number(read.code)
    return f"{_number(read.code)} - {read.zero_point} = {_number(read.centred)}"
