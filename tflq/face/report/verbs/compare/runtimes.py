"""One model on several runtimes: a row of figures for each, and where its bits part from those of the first."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.face.report.blocks import Block, Section, Table, Text
from tflq.face.report.documents.compare import OnRuntimeDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.texts import decibels, figures_cell
from tflq.quantization.judge.comparison import Comparison, OnRuntime

_COLUMNS = (
    ("runtime", "<"),
    ("accuracy", ">"),
    ("same top-1", ">"),
    ("SQNR dB", ">"),
    ("other outputs", ">"),
    ("other top-1", ">"),
    ("parts first at", "<"),
)


def runtimes_blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield the table of runtimes, and how each parts from the first; nothing if none were asked for."""
    if not comparison.runtimes:
        return
    first, *others = comparison.runtimes
    labelled = any(row.comparison is not None and figures_cell(row.comparison) for row in comparison.runtimes)
    is_classifier = comparison.agreement is not None
    shown = [True, labelled, is_classifier, True, bool(others), is_classifier and bool(others), bool(others)]
    columns = tuple(column for column, there in zip(_COLUMNS, shown, strict=True) if there)
    rows = [[cell for cell, there in zip(_row(row, first), shown, strict=True) if there] for row in comparison.runtimes]
    blocks: list[Block] = [Table(columns, rows)]
    blocks += [Text(f"{row.profile} does not take the model: {row.error}", "warning") for row in others if row.error]
    yield Section("runtimes", f"On each runtime, compared with {first.profile}", blocks)


def _row(row: OnRuntime, first: OnRuntime) -> list[str]:
    found = row.comparison
    if found is None:
        return [row.profile, "refused", "", "", "", "", ""]
    same = "" if found.agreement is None else f"{found.agreement.rate:.2%}"
    cells = [row.profile, figures_cell(found), same, decibels(found.leading).removesuffix(" dB")]
    if row is first:
        return [*cells, "", "", ""]
    changed = "" if found.agreement is None else f"{row.changed:,}"
    return [*cells, f"{row.differing:,} of {row.elements:,}", changed, parting_text(row)]


def parting_text(row: OnRuntime) -> str:
    """Return the first operator that differs on the same inputs, and how many others do."""
    if not row.operators:
        return "nowhere" if not row.differing else "no operator alone"
    first, more = row.operators[0], len(row.operators) - 1
    others = f", and {counted(more, 'more operator')}" if more else ""
    return f"{first.index} {first.op}{others}"


def runtimes_document(comparison: Comparison) -> list[OnRuntimeDocument]:
    """Return a row for each runtime; operators are those of the other model."""
    return [_document(row) for row in comparison.runtimes]


def _document(row: OnRuntime) -> OnRuntimeDocument:
    found = row.comparison
    agreement = None if found is None else found.agreement
    accuracies = None if agreement is None else agreement.accuracies
    return {
        "profile": row.profile,
        "error": row.error or None,
        "sqnr": None if found is None else found.leading,
        "accuracy": None if accuracies is None else accuracies[1],
        "agreement": None if agreement is None else agreement.rate,
        "metrics": {} if found is None else {metric.name: metric.other for metric in found.figures.metrics},
        "differing": row.differing,
        "elements": row.elements,
        "samples": row.samples,
        "changed": row.changed,
        "operators": [fields_of(o, differing=o.differing[0]) for o in row.operators],
    }
