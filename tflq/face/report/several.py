"""Summaries of several models: the gravest first, then a row for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from shlex import quote
from typing import Any

from tflq.face.report.blocks import Columns, Next, Report, Table, Verdict
from tflq.face.report.documents.summary import JudgedModelDocument, SummaryDocument
from tflq.face.report.json import error_document
from tflq.face.report.numbers import counted

FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The outcome of one model: its word, the cells of its row, its document and exit code; or an error."""

    path: str
    word: str
    cells: tuple[str, ...]
    document: Mapping[str, Any] | None
    code: IntEnum
    error: Exception | None = None


def summary_report(verb: str, columns: Columns, outcomes: Sequence[Outcome], code: IntEnum) -> Report:
    """Build the summary of several models: counts of the words, the command for the gravest, and a row for each.

    `code` is the gravest exit code.
    """
    worst = next(outcome for outcome in outcomes if outcome.code == code)
    counts = Counter(outcome.word for outcome in outcomes)
    ordered = sorted(counts, key=lambda word: word != worst.word)
    style = "good" if not worst.code else "warning" if worst.error is None else "bad"
    words = ", ".join(f"{counts[word]} {word}" for word in ordered)
    rows = [
        [o.word, *(o.cells or ("",) * len(columns)), o.path, "" if o.error is None else str(o.error)] for o in outcomes
    ]
    return Report(
        verb,
        [
            Verdict(words, style, worst.word.upper(), counted(len(outcomes), "model")),
            Next([f"tflq {verb} {quote(worst.path)}"] if worst.code else []),
            Table((("", "<"), *columns, ("model", "<"), ("error", "<")), rows),
        ],
    )


def summary_document(verb: str, outcomes: Sequence[Outcome], code: IntEnum) -> SummaryDocument:
    """Return the summary with each model's own document: `schemas/summary.schema.json`."""
    models: list[JudgedModelDocument] = [
        {
            "path": outcome.path,
            "outcome": outcome.word,
            "report": None if outcome.document is None else dict(outcome.document),
            "error": None if outcome.error is None else error_document(outcome.error, outcome.code),
        }
        for outcome in outcomes
    ]
    return {"schema": "tflq/summary/1", "verb": verb, "exit_code": int(code), "models": models}
