"""Complaints of `verify`, `conform` and `lint` in one form, for baselines and SARIF."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tflq.comparison.inspection.difference import Difference
from tflq.comparison.verification.report import Report
from tflq.comparison.verification.results import Status, TensorResult, Verdict
from tflq.devices.conformance.judging import Judged, Result, SuiteVerdict, Verdicts
from tflq.diagnosis.linting import Finding, Level, Lint
from tflq.escaping import shown
from tflq.face.report.json import json_value

#: Things that a message lists by name.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint. Its `key` stays as long as it does; `level` is error, warning or note; `place` is inside `file`.

    `verdict` is the verdict of a run in which this is the only complaint. `short` is the place without names of
    tensors, if it differs.
    """

    key: str
    rule: str
    summary: str
    level: str
    message: str
    file: str
    place: str
    verdict: str
    short: str = ""


# --- verify -----------------------------------------------------------------------------------------------------------


def issues_of_report(report: Report) -> Iterator[Issue]:
    """Yield everything whose bits differ or that was not compared: operators, outputs of the graph, subgraphs.

    A key contains a digest of all that is known of the differences, so that no other difference has the same key.
    """
    path = report.model.path or report.model.sha256
    for place, status, tensors, gaps in _things(report):
        if status == Status.DIFFERS:
            text = "; ".join(_said(t.difference) for t in tensors if t.difference is not None and not t.difference.same)
            known = [[t.index, t.name, t.type, t.shape, t.reason, _facts(t.difference)] for t in tensors]
            mark = _digest(report.model.sha256, report.profile, place, gaps, known)
            message = f"{place}: {text} under {report.profile}"
            key = f"verify:{_name(report)}:{place}:{text}:{mark}"
            yield Issue(
                key, "bits-differ", "Other bits than expected.", "error", message, path, place, Verdict.DIFFERS.value
            )
        elif status == Status.NOT_COMPARED:
            key = f"verify:{_name(report)}:{place}:not compared:{_digest(report.model.sha256, place, gaps)}"
            message = f"{place}: not compared: {gaps}"
            yield Issue(
                key, "not-compared", "It was not compared.", "warning", message, path, place, Verdict.INCOMPLETE.value
            )


def compare_of_report(report: Report) -> dict[str, int]:
    """Return how many elements were compared of each operator and output, by names that a baseline keeps."""
    counts = {
        f"verify:{_name(report)}:{place}": sum(t.difference.elements for t in tensors if t.difference is not None)
        for place, _, tensors, _ in _things(report)
    }
    return {name: count for name, count in counts.items() if count}


def _things(report: Report) -> Iterator[tuple[str, Status, tuple[TensorResult, ...], str]]:
    """Yield the place, the status, the tensors and the gaps of everything that a verdict speaks of."""
    for operator in report.operators:
        yield f"{operator.place} {operator.op}", operator.status, operator.tensors, operator.gaps
    for number, output in report.numbered_outputs:
        if output.covered_by is None:
            start = f"{output.signature}/" if output.signature else ""
            yield f"output {start}{number} {shown(output.name)}".rstrip(), output.status, (output,), output.reason
    for one in report.apart:
        if not one.callers:
            place = f"subgraph {one.index} {shown(one.name)}".rstrip()
            yield place, Status.NOT_COMPARED, (), f"no operator runs its {one.operators} operators"


def _name(report: Report) -> str:
    return os.path.basename(report.model.path or report.model.sha256)


def _said(d: Difference) -> str:
    counts = f"{d.differing:,} of {d.elements:,} elements differ, by up to {d.largest:,} {d.unit}".rstrip()
    kinds = "".join(f", {count:,} {kind}" for kind, count in d.kinds)
    return d.problem or counts + kinds


def _facts(d: Difference | None) -> dict[str, Any] | None:
    """Return everything that identifies a difference."""
    names = ("elements", "differing", "unit", "largest", "above", "below", "histogram", "problem", "kinds")
    return None if d is None else {name: getattr(d, name) for name in names} | {"first": d.first and asdict(d.first)}


def _digest(*facts: object) -> str:
    """Return a digest of facts, 16 digits."""
    text = json.dumps(json_value(facts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def no_longer_compared(before: Mapping[str, int], now: Mapping[str, int], baseline: str) -> Iterator[Issue]:
    """Yield one complaint if less is compared than when the baseline was written."""
    gone = {name: count for name, count in before.items() if now.get(name, 0) < count}
    if gone:
        some = ", ".join(f"{name} ({now.get(name, 0):,} of {n:,} elements)" for name, n in list(gone.items())[:_NAMED])
        more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
        message = f"no longer compared as when {baseline} was written: {some}{more}"
        key = f"no longer compared:{_digest(sorted(gone.items()))}"
        summary = "Less is compared than before."
        yield Issue(key, "no-longer-compared", summary, "warning", message, baseline, "", Verdict.INCOMPLETE.value)


def issues_of_failure(verb: str, path: str, problem: str) -> Iterator[Issue]:
    """Yield the complaint about a model that could not be read or run."""
    message = f"{path}: {problem}"
    key = f"{verb}:{os.path.basename(path)}:failed:{_digest(path, problem)}"
    yield Issue(key, "failed", "It could not be read or run.", "error", message, path, "", Verdict.INCOMPLETE.value)


# --- conform and lint -------------------------------------------------------------------------------------------------


def issues_of_verdicts(verdicts: Verdicts, suite: str) -> Iterator[Issue]:
    """Yield every case that fails. A key contains a digest of all that is known of the differences."""
    for judged in verdicts.failing:
        case, result = judged.case, judged.result.value
        causes = f"; reproduced by {', '.join(judged.causes[:3])}" if judged.causes else ""
        message = f"{case.op} {case.types} ({case.aim}): {result}: {judged.reason}{causes}"
        key = f"conform:{verdicts.profile}:{case.id}:{result}:{mark_of_case(judged)}"
        yield Issue(key, f"case-{result}", f"A case of the suite {result}.", "error", message, suite, case.id, "fails")
    if verdicts.rest != SuiteVerdict.PASSES:
        word = verdicts.rest.value
        message = "; ".join([f"{verdicts.target}: {word}", *verdicts.endings])
        key = f"conform:{verdicts.profile}:{word}:{_digest(message, verdicts.count(Result.REFUSED))}"
        yield Issue(key, f"run-{word.replace(' ', '-')}", f"The run: {word}.", "error", message, suite, "", word)


def compare_of_verdicts(verdicts: Verdicts) -> dict[str, int]:
    """Return the cases whose outputs were compared, by names that a baseline keeps."""
    seen = (Result.PASSES, Result.DIFFERS)
    return {f"conform:{verdicts.profile}:{j.case.id}": 1 for j in verdicts.cases if j.result in seen}


def mark_of_case(judged: Judged) -> str:
    """Return a digest of a case and of all that is known of its differences; other bits give another digest."""
    case = judged.case
    known: Iterable[object] = [[sample, output, _facts(d)] for sample, output, d in judged.differences]
    return judged.mark or _digest(case.model, case.samples, case.expected, judged.result.value, known)


def issues_of_lint(result: Lint, corrected: Sequence[Finding] = ()) -> Iterator[Issue]:
    """Yield every finding; those that were corrected fail no run."""
    path = result.facts.path or result.facts.sha256
    for f in result.findings:
        place = f"{f.subgraph}/{f.operator} {f.op}" + ("" if f.tensor is None else f" {shown(f.name)}")
        key = f"lint:{os.path.basename(path)}:{f.rule}:{place}:{_digest(f.tensor, f.required, f.found)}"
        verdict = "clean" if f in corrected or f.level is Level.NOTE else "findings"
        message = f"{place}: {f.summary}: expected {f.required}, got {f.found}"
        short = f"{f.subgraph}/{f.operator} {f.op}" + ("" if f.tensor is None else f" tensor {f.tensor}")
        yield Issue(key, f.rule, f.summary, f.level.value, message, path, place, verdict, short)
