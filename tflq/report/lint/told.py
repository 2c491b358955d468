"""What lint finds in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.linting import Lint
from tflq.report.card import Card
from tflq.report.lint.lines import finding_row, lint_lines, verdict_line


def lint_card(found: Lint) -> Card:
    """How much was found, the first of it, and what can be corrected."""
    verdict = verdict_line(found)
    where, then = f"every rule holds, {found.target or 'no target'} among them", "Next: tflq.verify(model)"
    if not found.target:
        where, then = "every rule holds; no target was named", 'Next: tflq.lint(model, "tflm"); tflq.verify(model)'
    if found.findings:
        rule, _, place, required, got, _ = finding_row(found.findings[0])
        where = f"First: operator {place}: {rule}: required {required}, found {got}"
        then = f"Next: .findings; {sum(f.fixable for f in found.findings)} can be corrected (tflq lint --fix)"
    return Card(verdict.text, where, then, verdict.style, lambda: lint_lines(found))


CARDS: Mapping[str, Callable[[Lint], Card]] = {"Lint": lint_card}
