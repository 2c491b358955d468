"""A verification in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.report.card import Card
from tflq.report.verify.lines import STYLES, coverage_texts, first_text, report_lines, sides_of, summary, what_ran
from tflq.verification.report import Report
from tflq.verification.results import Status


def report_card(report: Report) -> Card:
    """The verdict, the first difference or what was compared, and what to ask next."""
    first = report.first_divergent
    output = next((t for t in report.outputs if t.status == Status.DIFFERS), None)
    if first is not None:
        where = f"First divergent operator: {first.index} {first.op} {first_text(first.worst, sides_of(report))}"
        then = f"Next: .first_divergent; tflq.inspect(model).operators[{first.index}]"
    elif output is not None:
        where = f"First divergent output: {first_text(output, sides_of(report))}"
        then = 'Next: tflq.verify(model, mode="isolated") finds the operator'
    else:
        compared = next(coverage_texts(report))
        where, then = f"{compared}; {what_ran(report)}", "Next: .operators, .outputs, .coverage, .notes"
    what = f"{report.verdict.value.upper()} {summary(report)}"
    return Card(what, where, then, STYLES[report.verdict], lambda: report_lines(report, all_operators=True))


CARDS: Mapping[str, Callable[[Report], Card]] = {"Report": report_card}
