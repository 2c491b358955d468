"""Verifications of several models at one glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from shlex import quote
from typing import Any

from tflq.report.json import error_document
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table
from tflq.report.verbs.verify.document import verify_document
from tflq.verification.report import Report
from tflq.verification.results import Status, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of one model: a report or an error, and the exit code that stands for it."""

    path: str
    report: Report | None
    error: Exception | None
    code: IntEnum

    @property
    def verdict(self) -> str:
        """The report's verdict, or "failed"."""
        return "failed" if self.report is None else self.report.verdict.value


#: Verdicts, the gravest first.
_ORDER = (
    Verdict.DIFFERS.value,
    "failed",
    Verdict.NOTHING.value,
    Verdict.INCOMPLETE.value,
    Verdict.CLOSE.value,
    Verdict.SAME.value,
)


def summary_lines(outcomes: Sequence[Outcome]) -> Iterator[Line]:
    """The worst verdict with counts; which model first; what to type next; a row a model."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict])
    worst = next(verdict for verdict in _ORDER if counts[verdict])
    style = {"same": "good", "differs": "bad", "failed": "bad", "nothing compared": "bad"}.get(worst, "warning")
    yield Line(f"{worst.upper()} {counted(len(outcomes), 'model')}: {parts}", style)
    first = next((o for o in outcomes if o.verdict == worst), None)
    if first is not None and worst != "same":
        yield Line(f"First: {first.path}: {_where(first)}")
        if first.report is not None:
            yield Line(f"Next: tflq verify {quote(first.path)}{_again(first.report)}", "strong")
    columns = (("verdict", "<"), ("differing", ">"), ("operators exact", ">"), ("model", "<"), ("first", "<"))
    yield from table(columns, map(_row, outcomes))


def _again(report: Report) -> str:
    if report.golden:
        return f" --golden {quote(report.golden)}"
    name = getattr(report.against, "name", "litert-ref")
    return "" if name == "litert-ref" else f" --against {name}"


def _where(outcome: Outcome) -> str:
    if outcome.report is None:
        return str(outcome.error)
    first = outcome.report.first_divergent
    return "" if first is None else f"operator {first.index} {first.op}"


def _row(outcome: Outcome) -> list[str]:
    report = outcome.report
    if report is None:
        return [outcome.verdict, "", "", outcome.path, str(outcome.error)]
    exact = sum(o.status == Status.EXACT for o in report.operators)
    operators = f"{exact} of {len(report.operators)}" if report.operators else ""
    return [outcome.verdict, f"{report.differing:,} of {report.compared:,}", operators, outcome.path, _where(outcome)]


def summary_document(outcomes: Sequence[Outcome], code: IntEnum) -> dict[str, Any]:
    """The summary as a document, with the whole report of each model."""
    models = [
        {
            "path": outcome.path,
            "verdict": outcome.verdict,
            "report": None if outcome.report is None else verify_document(outcome.report),
            "error": None if outcome.error is None else error_document(outcome.error, outcome.code),
        }
        for outcome in outcomes
    ]
    return {"schema": "tflq/verify-summary/1", "exit_code": int(code), "models": models}
