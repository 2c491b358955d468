"""What a golden holds, and how two of them differ, in lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tflq.diagnosis.drift import Drift, Drifted, OperatorDrift
from tflq.inspection.difference import Difference
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table
from tflq.report.runtimes import runtime_text
from tflq.report.verbs.verify.report import STYLES
from tflq.verification.golden import Golden
from tflq.verification.results import Verdict


def golden_lines(golden: Golden, path: str, arrays: tuple[int, int]) -> Iterator[Line]:
    """What a golden says of itself. `arrays`: how many it has, and how many of them are different."""
    what = "all tensors" if golden.tensors else "outputs"
    yield Line(f"{path}: {what} of {counted(len(golden.observations), 'sample')}", "strong")
    rows = [
        ("runtime", runtime_text(golden.runtime)),
        ("model", golden.model_sha256 or "unknown"),
        ("arrays", f"{arrays[0]:,}, of which {arrays[1]:,} are different"),
        *(("tolerance", f"{t.operator}: {t.steps} until {t.expires}, {t.reason}") for t in golden.tolerances),
        *(("note", note) for note in golden.notes),
    ]
    yield from table([("", "<"), ("", "<")], rows)


def drift_lines(drift: Drift) -> Iterator[Line]:
    """Operators that differ, what explains the first, and the whole in one line."""
    rows = [_row(o) for o in drift.operators if o.drifted in (Drifted.CHANGED, Drifted.FOLLOWS)]
    if rows:
        columns = [("#", ">"), ("operator", "<"), ("what", "<"), ("differing", ">"), ("largest", ">"), ("first", "<")]
        yield from table(columns, rows)
        yield Line("")
    yield Line(f"first:  {runtime_text(drift.runtimes[0])}")
    yield Line(f"second: {runtime_text(drift.runtimes[1])}")
    causes = causes_of(drift)
    if causes:
        yield Line(
            f"operator {drift.changed[0].index} {drift.changed[0].op} of the second computes as {', '.join(causes[:3])}"
        )
    operators = sum(o.samples == drift.samples for o in drift.operators)
    outputs = sum(count == drift.samples for count in drift.output_samples)
    yield Line(
        f"Compared in {counted(drift.samples, 'sample')}: {operators:,} of {len(drift.operators):,} operators, "
        f"{outputs:,} of {len(drift.outputs):,} outputs"
    )
    yield verdict_line(drift)


def verdict_line(drift: Drift) -> Line:
    """Return the verdict in words."""
    return Line(_said(drift), STYLES[drift.verdict])


def causes_of(drift: Drift) -> tuple[str, ...]:
    """What reproduces the second recording's bits of the first operator that changed."""
    explanation = None if drift.findings is None else drift.findings.explanation
    return () if explanation is None else tuple(hypothesis.name for hypothesis in explanation.exact)


def _said(drift: Drift) -> str:
    count = counted(drift.samples, "sample")
    if drift.verdict == Verdict.NOTHING:
        return "NOTHING COMPARED: the recordings have no output and no operator's result in common"
    if drift.verdict == Verdict.INCOMPLETE:
        return "INCOMPLETE: nothing differs, but not everything is in both recordings"
    if not drift.differs:
        return f"same bits in {count}"
    if not drift.changed:
        return f"outputs differ in {count}; record with --all-tensors to see which operators changed"
    named = sorted({o.op for o in drift.changed})
    return f"{counted(len(drift.changed), 'operator')} changed bits: {', '.join(named)}"


def _row(operator: OperatorDrift) -> tuple[Any, ...]:
    what = "changed" if operator.drifted == Drifted.CHANGED else "its inputs differ"
    d: Difference | None = operator.difference
    if d is None or d.first is None:
        return str(operator.index), operator.op, what, "", "", ""
    at = f"{list(d.first.index)}: {d.first.expected} -> {d.first.got}"
    count = f"{d.differing:,} of {d.elements:,}"
    return str(operator.index), operator.op, what, count, f"{d.largest} {d.unit}", at
