"""What is found of a dump in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.findings import Findings
from tflq.report.card import Card
from tflq.report.explain.lines import (
    STYLES,
    cause_text,
    discrimination_texts,
    explain_lines,
    how_far,
    listed,
    verdict_text,
)
from tflq.report.render.line import Line


def findings_card(findings: Findings) -> Card:
    """The verdict, the first operator that differs, and its cause."""
    first, explanation = findings.first, findings.explanation
    missing = next((o for o in findings.operators if o.reason), None)
    where, then = f"against profile {findings.profile}, {findings.mode.value}", "Next: .operators, .unknown"
    if first is not None:
        difference = next(d for d in first.differences.values() if not d.same)
        where = f"First divergent operator: {first.index} {first.op}: {difference.problem or how_far(difference)}"
    elif missing is not None:
        where = f"not compared: operator {missing.index} {missing.op}: {missing.reason}"
    if explanation is not None:
        causes = listed([cause.name for cause in explanation.exact])
        then = f"Cause. {cause_text(explanation)} {causes}".rstrip()
    return Card(
        verdict_text(findings), where, then, STYLES[findings.verdict], lambda: explain_lines("MODEL", "DUMP", findings)
    )


def discrimination_card(found: Discrimination) -> Card:
    """How well causes are told apart, by what, and how that is handed to a device."""
    what, *groups = discrimination_texts(found)
    of = "the model" if found.index is None else f"operator {found.index}"
    then = "numpy.savez(path, **found.arrays()), run the device on these inputs, then tflq.explain"
    return Card(
        what,
        f"{len(found.causes)} causes of {of} in {len(found.groups)} groups: {listed(found.causes)}",
        f"Next: {then}" if found.trials else "Next: a dump of other inputs may tell them apart",
        report=lambda: map(Line, groups),
    )


CARDS: Mapping[str, Callable[[Any], Card]] = {"Discrimination": discrimination_card, "Findings": findings_card}
