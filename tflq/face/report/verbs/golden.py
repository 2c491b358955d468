"""The reports of `tflq golden`: the contents of a golden, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tflq.comparison.inspection.difference import Difference
from tflq.comparison.verification.bundle import manifest_of
from tflq.comparison.verification.golden import Golden
from tflq.comparison.verification.results import Verdict as Word
from tflq.face.report.blocks import Block, Brief, Fact, Gap, Pairs, Report, Table, Text, Verdict
from tflq.face.report.changes import change_blocks, changes_document
from tflq.face.report.documents.golden_diff import GoldenDiffDocument
from tflq.face.report.documents.shared import brief_difference_document, runtime_document
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Strip
from tflq.face.report.runtimes import runtime_text
from tflq.face.report.verbs.verify.report import STYLES
from tflq.verbs.drift import Drift, Drifted, OperatorDrift

_COLUMNS = (("#", ">"), ("operator", "<"), ("what", "<"), ("differing", ">"), ("largest", ">"), ("first", "<"))


def golden_report(golden: Golden, path: str, arrays: tuple[int, int]) -> Report:
    """Build the report of a golden; `arrays` are the numbers of its arrays and of different ones."""
    what = "all tensors" if golden.tensors else "outputs"
    facts = [
        ("runtime", runtime_text(golden.runtime)),
        ("model", golden.model_sha256 or "unknown"),
        ("arrays", f"{arrays[0]:,}, of which {arrays[1]:,} are different"),
        *(("tolerance", f"{t.operator}: {t.steps} until {t.expires}, {t.reason}") for t in golden.tolerances),
        *(("note", note) for note in golden.notes),
    ]
    verdict = Verdict(f"{what} of {counted(len(golden.observations), 'sample')}", subject=path)
    return Report("golden", [verdict, Pairs(facts)])


def written_report(path: str, samples: int) -> Report:
    """Build the report of a golden that was written."""
    return Report("golden", [Verdict(counted(samples, "sample"), "", subject=path)])


def drift_report(drift: Drift) -> Report:
    """Build the report of two recordings: the operators that differ, what explains the first, the verdict."""
    return Report("golden", list(_drift_blocks(drift)))


def drift_card(drift: Drift) -> Report:
    """Build the report of two recordings for a console or a notebook."""
    shades = {Drifted.SAME: "good", Drifted.CHANGED: "bad", Drifted.FOLLOWS: "warning"}
    title = "operators: red changed, yellow follows from it, green is the same"
    strip = Strip(title, [shades.get(o.drifted, "unknown") for o in drift.operators])
    changed = drift.changed[0] if drift.changed else None
    where = f"{drift.first} and {drift.second}"
    if changed is not None:
        where = f"First: operator {changed.place} {changed.op}"
    return Report("golden", [*_drift_blocks(drift), strip, Brief(where, "Next: .changed, .operators, .findings")])


def _drift_blocks(drift: Drift) -> Iterator[Block]:
    rows = [_row(o) for o in drift.operators if o.drifted in (Drifted.CHANGED, Drifted.FOLLOWS)]
    if rows:
        yield Table(_COLUMNS, rows)
        yield Gap()
    yield Fact(f"first:  {runtime_text(drift.runtimes[0])}")
    yield Fact(f"second: {runtime_text(drift.runtimes[1])}")
    causes = _causes(drift)
    if drift.own is not None:
        yield Text(f"{drift.own[0]} reproduces every bit of the first, {drift.own[1]} every bit of the second.")
        yield from change_blocks(drift.changes, *drift.own)
    elif causes:
        changed = drift.changed[0]
        yield Text(f"operator {changed.place} {changed.op} of the second computes as {', '.join(causes[:3])}")
    operators = sum(o.samples == drift.samples for o in drift.operators)
    outputs = sum(count == drift.samples for count in drift.output_samples)
    yield Fact(
        f"Compared in {counted(drift.samples, 'sample')}: {operators:,} of {len(drift.operators):,} operators, "
        f"{outputs:,} of {len(drift.outputs):,} outputs"
    )
    word = Word.EXPLAINED.value.upper() if drift.verdict == Word.EXPLAINED else ""
    yield Verdict(_verdict_text(drift), STYLES[drift.verdict], word)


def _causes(drift: Drift) -> tuple[str, ...]:
    """Return the causes that reproduce the second recording's bits of the first operator that changed."""
    explanation = None if drift.findings is None else drift.findings.explanation
    return () if explanation is None else tuple(cause.name for cause in explanation.exact)


def _verdict_text(drift: Drift) -> str:
    count = counted(drift.samples, "sample")
    if drift.verdict == Word.NOTHING:
        return "NOTHING COMPARED: the recordings have no output and no operator's result in common"
    if drift.verdict == Word.INCOMPLETE:
        return "INCOMPLETE: nothing differs, but not everything is in both recordings"
    if not drift.differs:
        return f"same bits in {count}"
    if not drift.changed:
        return f"outputs differ in {count}{_effect(drift)}; record with --all-tensors to see which operators changed"
    named = sorted({o.op for o in drift.changed})
    return f"{counted(len(drift.changed), 'operator')} changed bits: {', '.join(named)}{_effect(drift)}"


def _effect(drift: Drift) -> str:
    """Return how far the outputs differ at most, and how many of their rows choose another element."""
    differing = [d for d in drift.outputs if d is not None and not d.same]
    if not any(drift.output_samples):
        return ""
    if not differing:
        return "; the same outputs"
    largest = max(differing, key=lambda d: d.largest)
    rows, flipped = sum(c.rows for c in drift.choices), sum(c.flipped for c in drift.choices)
    far = f"; outputs by up to {largest.largest:,} {largest.unit}" if largest.largest else "; the outputs too"
    return far + (f", arg-max flips in {flipped:,} of {counted(rows, 'row')}" if rows else "")


def _row(operator: OperatorDrift) -> tuple[str, ...]:
    what = "changed" if operator.drifted == Drifted.CHANGED else "its inputs differ"
    d: Difference | None = operator.difference
    if d is None or d.first is None:
        return operator.place, operator.op, what, "", "", ""
    at = f"{list(d.first.index)}: {d.first.expected} -> {d.first.got}"
    count = f"{d.differing:,} of {d.elements:,}"
    return operator.place, operator.op, what, count, f"{d.largest} {d.unit}", at


# --- Documents -------------------------------------------------------------------------------------------------------


def golden_document(golden: Golden, path: str, arrays: tuple[int, int]) -> dict[str, Any]:
    """Return the manifest of the golden as a bundle, its path, and the numbers of its arrays and of different ones."""
    return {
        "schema": "tflq/golden-show/1",
        "golden": path,
        "arrays": arrays[0],
        "different": arrays[1],
        "manifest": manifest_of(golden, len(golden.observations)),
    }


def drift_document(drift: Drift) -> GoldenDiffDocument:
    """Return the document, with every operator: `schemas/golden-diff.schema.json`."""
    return {
        "schema": "tflq/golden-diff/1",
        "first": {"golden": drift.first, "runtime": runtime_document(drift.runtimes[0])},
        "second": {"golden": drift.second, "runtime": runtime_document(drift.runtimes[1])},
        "profile": drift.profile,
        "samples": drift.samples,
        "differs": drift.differs,
        "verdict": drift.verdict.value,
        "operators": [
            {
                "signature": o.signature or None,
                "index": o.index,
                "op": o.op,
                "drifted": o.drifted,
                "samples": o.samples,
                "difference": brief_difference_document(o.difference),
            }
            for o in drift.operators
        ],
        "outputs": [brief_difference_document(d) for d in drift.outputs],
        "output_samples": list(drift.output_samples),
        "causes": list(_causes(drift)),
        "explained": None
        if drift.own is None
        else {"first": drift.own[0], "second": drift.own[1], "changes": changes_document(drift.changes)},
        "choices": [{"rows": c.rows, "flipped": c.flipped} for c in drift.choices],
    }
