"""Complaints of `verify`, `conform` and `lint` in one form, for baselines and SARIF.

Complaints as SARIF 2.1.0 (OASIS), which GitHub and other CI servers show beside the files they are about.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import tflq
from tflq.comparison.inspection.difference import Difference
from tflq.comparison.results import Status, TensorResult, Verdict
from tflq.comparison.verification.report import Verification
from tflq.devices.suites.judge import CaseResult, Judged, SuiteVerdict, Verdicts
from tflq.diagnosis.linting.lint import Lint
from tflq.diagnosis.linting.rules import Finding, Level
from tflq.face.report.json import dumps, json_value
from tflq.texts import printable, shown

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


@dataclass(frozen=True, slots=True)
class Complaints:
    """The complaints of a run.

    `rest` is its verdict if all issues were accepted; `compared` is the number of compared elements of each part, by
    names that a baseline keeps.
    """

    rest: Enum | str
    issues: Sequence[Issue]
    compared: Mapping[str, int] = field(default_factory=dict)


# --- verify -----------------------------------------------------------------------------------------------------------


def complaints_of_report(report: Verification) -> Complaints:
    """Return the complaints of a verification."""
    counts = {
        f"verify:{_name(report)}:{place}": sum(t.difference.elements for t in tensors if t.difference is not None)
        for place, _, tensors, _ in _things(report)
    }
    compared = {name: count for name, count in counts.items() if count}
    return Complaints(report.rest, list(_report_issues(report)), compared)


def _report_issues(report: Verification) -> Iterator[Issue]:
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


def _things(report: Verification) -> Iterator[tuple[str, Status, tuple[TensorResult, ...], str]]:
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


def _name(report: Verification) -> str:
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


def complaints_of_failure(verb: str, path: str, problem: str, code: Enum) -> Complaints:
    """Return the complaint about a model that could not be read or run; no baseline accepts it."""
    message = f"{path}: {problem}"
    key = f"{verb}:{os.path.basename(path)}:failed:{_digest(path, problem)}"
    summary = "It could not be read or run."
    return Complaints(code, [Issue(key, "failed", summary, "error", message, path, "", Verdict.INCOMPLETE.value)])


# --- conform and lint -------------------------------------------------------------------------------------------------


def complaints_of_verdicts(verdicts: Verdicts, suite: str) -> Complaints:
    """Return the complaints of a run of a suite. What is compared are the cases with outputs."""
    seen = (CaseResult.PASSES, CaseResult.DIFFERS)
    compared = {f"conform:{verdicts.profile}:{j.case.id}": 1 for j in verdicts.cases if j.result in seen}
    return Complaints(verdicts.rest, list(_verdict_issues(verdicts, suite)), compared)


def _verdict_issues(verdicts: Verdicts, suite: str) -> Iterator[Issue]:
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
        key = f"conform:{verdicts.profile}:{word}:{_digest(message, verdicts.count(CaseResult.REFUSED))}"
        yield Issue(key, f"run-{word.replace(' ', '-')}", f"The run: {word}.", "error", message, suite, "", word)


def mark_of_case(judged: Judged) -> str:
    """Return a digest of a case and of all that is known of its differences; other bits give another digest."""
    case = judged.case
    known: Iterable[object] = [[sample, output, _facts(d)] for sample, output, d in judged.differences]
    return judged.mark or _digest(case.model, case.samples, case.expected, judged.result.value, known)


def complaints_of_lint(result: Lint, corrected: Sequence[Finding] = ()) -> Complaints:
    """Return every finding; those that were corrected fail no run."""
    return Complaints("clean", list(_lint_issues(result, corrected)))


def _lint_issues(result: Lint, corrected: Sequence[Finding]) -> Iterator[Issue]:
    """Yield every finding; those that were corrected fail no run."""
    path = result.facts.path or result.facts.sha256
    for f in result.findings:
        place = f"{f.subgraph}/{f.operator} {f.op}" + ("" if f.tensor is None else f" {shown(f.name)}")
        key = f"lint:{os.path.basename(path)}:{f.rule}:{place}:{_digest(f.tensor, f.required, f.found)}"
        verdict = "clean" if f in corrected or f.level is Level.NOTE else "findings"
        message = f"{place}: {f.summary}: expected {f.required}, got {f.found}"
        short = f"{f.subgraph}/{f.operator} {f.op}" + ("" if f.tensor is None else f" tensor {f.tensor}")
        yield Issue(key, f.rule, f.summary, f.level.value, message, path, place, verdict, short)


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://pypi.org/project/tflq/"


def sarif(issues: Sequence[Issue], accepted: Mapping[str, str]) -> str:
    """Return the log as text. `accepted` has the reasons of complaints, by key, that a baseline accepts."""
    rules = {issue.rule: issue.summary for issue in issues}
    run = {
        "tool": {
            "driver": {
                "name": "tflq",
                "version": tflq.__version__,
                "informationUri": _HOME,
                "rules": [{"id": r, "shortDescription": {"text": printable(s)}} for r, s in sorted(rules.items())],
            }
        },
        "results": [_result(issue, accepted.get(issue.key)) for issue in issues],
        "columnKind": "unicodeCodePoints",
    }
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _result(issue: Issue, reason: str | None) -> dict[str, Any]:
    place = {
        "physicalLocation": {"artifactLocation": {"uri": quote(PurePath(issue.file).as_posix())}},
        "logicalLocations": [{"name": printable(issue.place), "kind": "element"}],
    }
    result = {
        "ruleId": issue.rule,
        "level": issue.level,
        "message": {"text": printable(issue.message, 2000)},
        "locations": [place],
        "partialFingerprints": {"tflq/v1": hashlib.sha256(issue.key.encode()).hexdigest()[:32]},
    }
    if reason is not None:
        result["suppressions"] = [{"kind": "external", "justification": printable(reason)}]
    return result
