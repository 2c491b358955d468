"""The report of a learned device: operators and what they are, requantizers in formulas, one element's steps.

A learned device as a report and a document.

A learned device as a JSON document (`schemas/learn.schema.json`).
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.devices.learning.findings import Learned, LearnFindings, LearnState
from tflq.devices.learning.space import Requantized
from tflq.devices.learning.words import describe, finding, formula, provenance, requantizer_in_words, work_out
from tflq.engine.numerics.requantizer import differing, stated
from tflq.face.report.blocks import (
    Badge,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Fold,
    Headline,
    Inline,
    Listing,
    Next,
    Pairs,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.conform import LearnDocument, RequantizerDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.matrices import Strip
from tflq.face.report.wording import counted


def learn_document(found: LearnFindings, profile: str = "") -> LearnDocument:
    """Return the findings as JSON values; `profile` is the file that was written."""
    requantizers = [
        filled(
            RequantizerDocument,
            one,
            left=len(one.points),
            fields=stated(one.points[0]) if one.points else None,
            formula=formula(one.points[0]) if one.points else "",
            element=work_out(one),
            **{"is": requantizer_in_words(one.points[0]) if one.points else ""},
        )
        for one in found.requantizers
    ]
    told = {**provenance(found), "output": profile, "seconds": round(found.seconds, 3), "requantizers": requantizers}
    return filled(LearnDocument, found, **told)


_STYLES = {
    LearnState.LEARNED: "good",
    LearnState.PARTLY: "warning",
    LearnState.TABLE: "warning",
    LearnState.UNKNOWN: "bad",
    LearnState.UNSTABLE: "bad",
    LearnState.REFUSED: "unknown",
    LearnState.FAILED: "bad",
    LearnState.OPEN: "unknown",
}
#: Operators that text lists, and forms that are named beside the first.
_LISTED, _NAMED = 60, 12


def learn_report(found: LearnFindings, profile: str) -> Report:
    """Build the report of a device whose profile was written to `profile`. Its text ends with the verdict."""
    return Report(
        "learn", list(_blocks(found, profile)), about=(CodeBlock(found.target),), title=f"{found.target}: learned"
    )


def learn_card(found: LearnFindings) -> Report:
    """Build the report of a learned device for a console or a notebook."""
    learned = found.count(LearnState.LEARNED)
    where = f"{learned} of {counted(len(found.operators), 'operator')} as a form of the grammar"
    strip = Strip("operators: green is learned, red is not", [_STYLES[one.state] for one in found.operators])
    brief = Brief(where, "Next: .operators, .requantizers; profile_document(found) is a profile's file")
    return Report("learn", [*_blocks(found, "PROFILE.yaml"), strip, brief])


def _blocks(found: LearnFindings, profile: str) -> Iterator[Block]:
    yield Section("operators", "Operators", [_operators(found)])
    known = [one for one in found.requantizers if one.points]
    if known:
        yield Section("requantizers", "Requantizers", [block for one in known for block in _requantizer(one)])
    excluded = [_exclude(one) for one in found.operators if one.tried]
    if excluded:
        yield Section("excluded", "What was excluded", [Fold("forms that were compared", excluded)])
    tally = found.tally
    yield FactLine(
        f"{counted(tally.questions, 'model')} in {counted(tally.calls, 'call')}, {tally.elements:,} elements answered"
        f"{f', {tally.kept:,} models by an earlier run' if tally.kept else ''}; "
        f"{found.seconds / 60:.1f} minutes, {tally.seconds / 60:.1f} of them in the target"
    )
    if found.is_partial:
        how = "the profile has what is known; the same command with --force goes on from its answers"
        yield FactLine(f"not finished{': ' + found.reason if found.reason else ''}; {how}", "bad")
    if any(one.is_executed for one in found.operators):
        made = f"tflq conform make --profile {quote(profile)} -o suite.npz"
        yield Next([f"{made}, then tflq conform run suite.npz --target CMD"])
    yield verdict_of(found)


def verdict_of(found: LearnFindings) -> Headline:
    """Return the counts of operators by state, in one line."""
    counts = {state: found.count(state) for state in LearnState}
    style = "good" if counts[LearnState.LEARNED] and not any(counts[s] for s in _UNKNOWN) else "warning"
    said = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    word = "LEARNED" if counts[LearnState.LEARNED] + counts[LearnState.TABLE] else "NOTHING LEARNED"
    return Headline(f"{counted(len(found.operators), 'operator')}: {said}", style, word, found.target)


_UNKNOWN = (LearnState.UNKNOWN, LearnState.UNSTABLE, LearnState.FAILED, LearnState.OPEN)


def _operators(found: LearnFindings) -> TableBlock:
    columns = [("operator", "<"), ("types", "<"), ("state", "<"), ("asked", ">"), ("fresh", ">"), ("elements", ">")]
    listed = sorted(found.operators, key=lambda one: one.state is LearnState.REFUSED)
    shown = len(listed) - found.count(LearnState.REFUSED)
    rest = "and {left} more" if shown > _LISTED else "and {left} that the target refuses (--json has all)"
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
        for one in listed
    ]
    return TableBlock([*columns, ("what it is", "<")], rows, most=max(1, min(shown, _LISTED)), rest=rest)


def _requantizer(one: Requantized) -> Iterator[Block]:
    point = one.points[0]
    yield Text((f"{one.op} {one.kind}: ", requantizer_in_words(point)))
    yield Text(CodeBlock(formula(point)), indent=1)
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
