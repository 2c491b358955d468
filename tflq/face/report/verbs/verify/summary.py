"""The summary of verifications of several models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from shlex import quote

from tflq.comparison.verification.report import Report as Verification
from tflq.comparison.verification.results import Status
from tflq.comparison.verification.results import Verdict as Word
from tflq.face.report.blocks import Block, Next, Report, Table, Text, Verdict
from tflq.face.report.documents.verify_summary import VerifiedModelDocument, VerifySummaryDocument
from tflq.face.report.json import error_document
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.verify.document import verify_document


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The outcome of one model: a verification or an error, and its exit code."""

    path: str
    report: Verification | None
    error: Exception | None
    code: IntEnum

    @property
    def verdict(self) -> str:
        """The report's verdict, or "failed"."""
        return "failed" if self.report is None else self.report.verdict.value


#: Verdicts, the gravest first.
_ORDER = (
    Word.DIFFERS.value,
    "failed",
    Word.NOTHING.value,
    Word.INCOMPLETE.value,
    Word.EXPLAINED.value,
    Word.CLOSE.value,
    Word.ACCEPTED.value,
    Word.SAME.value,
)


def summary_report(outcomes: Sequence[Outcome]) -> Report:
    """Build the summary of several models: the worst verdict with counts, the first such model, a row for each."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict])
    worst = next(verdict for verdict in _ORDER if counts[verdict])
    style = {"same": "good", "differs": "bad", "failed": "bad", "nothing compared": "bad"}.get(worst, "warning")
    columns = (("verdict", "<"), ("differing", ">"), ("operators exact", ">"), ("model", "<"), ("first", "<"))
    first = next(outcome for outcome in outcomes if outcome.verdict == worst)
    blocks: list[Block] = [Verdict(parts, style, worst.upper(), counted(len(outcomes), "model"))]
    if worst != "same":
        blocks.append(Text(f"First: {first.path}: {_where(first)}"))
        if first.report is not None:
            blocks.append(Next([f"tflq verify {quote(first.path)}{_again(first.report)}"]))
    return Report("verify", [*blocks, Table(columns, list(map(_row, outcomes)))])


def _again(report: Verification) -> str:
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


def summary_document(outcomes: Sequence[Outcome], code: IntEnum) -> VerifySummaryDocument:
    """Return the summary as a document, with the whole report of each model."""
    models: list[VerifiedModelDocument] = [
        {
            "path": outcome.path,
            "verdict": outcome.verdict,
            "report": None if outcome.report is None else verify_document(outcome.report),
            "error": None if outcome.error is None else error_document(outcome.error, outcome.code),
        }
        for outcome in outcomes
    ]
    return {"schema": "tflq/verify-summary/1", "exit_code": int(code), "models": models}
