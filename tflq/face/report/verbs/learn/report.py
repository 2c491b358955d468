"""The report of a learned device: operators and what they are, requantizers in formulas, one element's steps."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.devices.learning.findings import Findings, Learned, State
from tflq.devices.learning.requantizing import Requantized
from tflq.devices.learning.words import describe, finding, formula, requantizer_in_words, work_out
from tflq.engine.numerics.requantizer_points import differing
from tflq.face.report.blocks import (
    Badge,
    Block,
    Brief,
    Code,
    Fact,
    Fold,
    Inline,
    Listing,
    Next,
    Pairs,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Strip

_STYLES = {
    State.LEARNED: "good",
    State.PARTLY: "warning",
    State.TABLE: "warning",
    State.UNKNOWN: "bad",
    State.UNSTABLE: "bad",
    State.REFUSED: "unknown",
    State.FAILED: "bad",
    State.OPEN: "unknown",
}
#: Operators that text lists, and forms that are named beside the first.
_LISTED, _NAMED = 60, 12


def learn_report(found: Findings, profile: str) -> Report:
    """Build the report of a device whose profile was written to `profile`. Its text ends with the verdict."""
    return Report("learn", list(_blocks(found, profile)), about=(Code(found.target),), title=f"{found.target}: learned")


def learn_card(found: Findings) -> Report:
    """Build the report of a learned device for a console or a notebook."""
    learned = found.count(State.LEARNED)
    where = f"{learned} of {counted(len(found.operators), 'operator')} as a form of the grammar"
    strip = Strip("operators: green is learned, red is not", [_STYLES[one.state] for one in found.operators])
    brief = Brief(where, "Next: .operators, .requantizers; profile_document(found) is a profile's file")
    return Report("learn", [*_blocks(found, "PROFILE.yaml"), strip, brief])


def _blocks(found: Findings, profile: str) -> Iterator[Block]:
    yield Section("operators", "Operators", [_operators(found)])
    known = [one for one in found.requantizers if one.points]
    if known:
        yield Section("requantizers", "Requantizers", [block for one in known for block in _requantizer(one)])
    excluded = [_exclude(one) for one in found.operators if one.tried]
    if excluded:
        yield Section("excluded", "What was excluded", [Fold("forms that were compared", excluded)])
    tally = found.tally
    yield Fact(
        f"{counted(tally.questions, 'model')} in {counted(tally.calls, 'call')}, {tally.elements:,} elements answered"
        f"{f', {tally.kept:,} models by an earlier run' if tally.kept else ''}; "
        f"{found.seconds / 60:.1f} minutes, {tally.seconds / 60:.1f} of them in the target"
    )
    if found.is_partial:
        how = "the profile has what is known; the same command with --force goes on from its answers"
        yield Fact(f"not finished{': ' + found.reason if found.reason else ''}; {how}", "bad")
    if any(one.is_executed for one in found.operators):
        made = f"tflq conform make --profile {quote(profile)} -o suite.npz"
        yield Next([f"{made}, then tflq conform run suite.npz --target CMD"])
    yield verdict_of(found)


def verdict_of(found: Findings) -> Verdict:
    """Return the counts of operators by state, in one line."""
    counts = {state: found.count(state) for state in State}
    style = "good" if counts[State.LEARNED] and not any(counts[s] for s in _UNKNOWN) else "warning"
    said = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    word = "LEARNED" if counts[State.LEARNED] + counts[State.TABLE] else "NOTHING LEARNED"
    return Verdict(f"{counted(len(found.operators), 'operator')}: {said}", style, word, found.target)


_UNKNOWN = (State.UNKNOWN, State.UNSTABLE, State.FAILED, State.OPEN)


def _operators(found: Findings) -> Table:
    columns = [("operator", "<"), ("types", "<"), ("state", "<"), ("asked", ">"), ("fresh", ">"), ("elements", ">")]
    rows: list[tuple[Inline, ...]] = [
        (
            one.subject.op,
            one.subject.types,
            Badge(one.state.value, _STYLES[one.state]),
            f"{one.asked:,}",
            f"{one.fresh:,}",
            f"{one.fresh_elements:,}",
            finding(one),
        )
        for one in found.operators
    ]
    return Table([*columns, ("what it is", "<")], rows, most=_LISTED)


def _requantizer(one: Requantized) -> Iterator[Block]:
    point = one.points[0]
    yield Text((f"{one.op} {one.kind}: ", requantizer_in_words(point)))
    yield Text(Code(formula(point)), indent=1)
    fields = differing(one.points)
    if fields:
        how = (
            "equal at every edge between codes, at the multipliers asked" if one.proved else "not told apart by search"
        )
        yield Text(f"{len(one.points)} points are left; they differ in {', '.join(fields)}: {how}", indent=1)
    yield Fold(f"one element of {one.op}, step by step", [Pairs([(step.name, step.value) for step in work_out(one)])])


def _exclude(one: Learned) -> Block:
    left = (0 if one.form is None else 1) + len(one.also)
    text = f"{one.subject}: {one.tried - left:,} of {one.tried:,} forms excluded"
    also = [describe(form) for form in one.also[:_NAMED]]
    return Listing([text, *(f"  not told apart: {said}" for said in also)])
