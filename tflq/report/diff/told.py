"""The differences of two models in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.inspection.model_diff import ModelDiff
from tflq.report.card import Card
from tflq.report.diff.lines import change_row, diff_lines, kinds_text, verdict_line


def diff_card(found: ModelDiff) -> Card:
    """How many operators differ, in what, and the first change."""
    verdict = verdict_line(found)
    where, then = "same operators, options, tensors and constants", "Next: .first, .second"
    if found.changes:
        operator, what, before, after = change_row(found.changes[0])
        values = f"{before} -> {after}" if before else after
        where, then = kinds_text(found), f"Next: .changes; the first: {operator}, {what}: {values}"
    return Card(verdict.text, where, then, verdict.style, lambda: diff_lines(found))


CARDS: Mapping[str, Callable[[ModelDiff], Card]] = {"ModelDiff": diff_card}
