"""What `verify`, `conform` and `lint` complain of, in one form: for baselines and SARIF."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from tflq.conformance.judging import Verdicts
from tflq.escaping import shown
from tflq.linting import Lint
from tflq.verification.results import Report, Status


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint. Its `key` stays as long as it does; `level` is error or warning; `place` is inside `file`."""

    key: str
    rule: str
    summary: str
    level: str
    message: str
    file: str
    place: str


def issues_of_report(report: Report) -> Iterator[Issue]:
    """Every operator, or output of the graph, whose bits differ. A larger difference has another key."""
    path = report.model.path or report.model.sha256
    name = os.path.basename(path)
    for operator in report.operators:
        worst = operator.worst
        if operator.status != Status.DIFFERS or worst is None or worst.difference is None:
            continue
        d = worst.difference
        said = d.problem or f"{d.differing:,} of {d.elements:,} elements differ, by up to {d.largest}"
        place = f"{operator.index} {operator.op}"
        key = f"verify:{name}:{place}:{d.largest} {d.unit}"
        message = f"{place}: {said} {d.unit} under {report.profile}"
        yield Issue(key, "bits-differ", "An operator gives other bits.", "error", message, path, place)
    if report.operators:
        return
    for number, output in enumerate(report.outputs):
        if output.difference is not None and output.status == Status.DIFFERS:
            place = f"output {number} {shown(output.name)}"
            key = f"verify:{name}:{place}:{output.difference.largest} {output.difference.unit}"
            message = f"{place}: {output.difference.differing:,} elements differ under {report.profile}"
            yield Issue(key, "bits-differ", "An output has other bits.", "error", message, path, place)


def issues_of_verdicts(verdicts: Verdicts, suite: str) -> Iterator[Issue]:
    """Every case that fails."""
    for judged in verdicts.failing:
        case, result = judged.case, judged.result.value
        causes = f"; reproduced by {', '.join(judged.causes[:3])}" if judged.causes else ""
        message = f"{case.op} {case.types} ({case.aim}): {result}: {judged.reason}{causes}"
        key = f"conform:{verdicts.profile}:{case.id}:{result}"
        yield Issue(key, f"case-{result}", f"A case of the suite {result}.", "error", message, suite, case.id)


def issues_of_lint(result: Lint) -> Iterator[Issue]:
    """Every finding."""
    path = result.facts.path or result.facts.sha256
    for f in result.findings:
        place = f"{f.subgraph}/{f.operator} {f.op}" + ("" if f.tensor is None else f" {shown(f.name)}")
        key = f"lint:{os.path.basename(path)}:{f.rule}:{f.subgraph}:{f.operator}:{f.tensor}"
        message = f"{place}: {f.summary}: expected {f.required}, got {f.found}"
        yield Issue(key, f.rule, f.summary, f.level.value, message, path, place)
