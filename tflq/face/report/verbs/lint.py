"""The report of `tflq lint`: the findings about a model, by rule and by operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING

from tflq.diagnosis.linting import Finding, Level, Lint
from tflq.escaping import shown
from tflq.face.report.blocks import (
    Badge,
    Bar,
    Bars,
    Block,
    Brief,
    Code,
    Graph,
    InText,
    Next,
    OnPage,
    Pairs,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.documents.lint import LintDocument
from tflq.face.report.documents.shared import facts_document, fields_of
from tflq.face.report.graph.colouring import states
from tflq.face.report.numbers import counted
from tflq.model.ir.signatures import place_of

if TYPE_CHECKING:
    from tflq.face.report.graph.standard import ModelView

_COLUMNS = (("rule", "<"), ("level", "<"), ("operator", "<"), ("required", "<"), ("found", "<"), ("tensor", "<"))
_STYLES = {Level.ERROR: "bad", Level.WARNING: "warning", Level.NOTE: "faint"}


def lint_report(result: Lint, fixed_file: str | None = None, corrected: int = 0, *, accepted: bool = False) -> Report:
    """Build the report; `corrected` of the findings are corrected in `fixed_file`, if there is one.

    `accepted`: a baseline accepts all of them.
    """
    path = result.facts.path or "model"
    blocks = list(_blocks(result, path, fixed_file, corrected, accepted))
    return Report("lint", blocks, about=Code(path), title=f"{path}: tflq lint")


def _blocks(result: Lint, path: str, fixed_file: str | None, corrected: int, accepted: bool) -> Iterator[Block]:
    yield _verdict(result, path, accepted)
    yield _brief(result)
    yield Section("rules", "Rules", [_rules(result)])
    rows = list(map(_row, result.findings))
    yield InText([Table(_COLUMNS, rows), *_summaries(result)])
    if fixed_file is not None and result.findings:
        yield Text(f"{fixed_file}: {corrected} of {len(result.findings)} corrected")
    elif any(f.fixable for f in result.findings):
        yield Next([f"tflq lint {quote(result.facts.path or 'MODEL')} --fix fixed.tflite"])
    yield OnPage(lambda view: [_graph(view, result), Section("findings", "Findings", [Table(_COLUMNS, rows)])])


def _verdict(result: Lint, path: str, accepted: bool) -> Verdict:
    if not result.findings:
        asked = f", the rules of {result.target} included" if result.target else ""
        return Verdict(f"nothing found{asked}", "good", subject=path)
    counts = Counter(f.level for f in result.findings)
    names = [level for level in Level if counts[level] or level is not Level.NOTE]
    text = ", ".join(counted(counts[level], level.value) for level in names)
    style = "bad" if counts[Level.ERROR] and not accepted else "warning"
    return Verdict(text, style, "ACCEPTED" if accepted else "", subject=path)


def _brief(result: Lint) -> Brief:
    if result.findings:
        rule, _, place, required, got, _ = _row(result.findings[0])
        fixable = sum(f.fixable for f in result.findings)
        where = f"First: operator {place}: {rule}: required {required}, found {got}"
        return Brief(where, f"Next: .findings; {fixable} can be corrected (tflq lint --fix)")
    if result.target:
        return Brief(f"every rule holds, {result.target} among them", "Next: tflq.verify(model)")
    then = 'Next: tflq.lint(model, "tflm"); tflq.verify(model)'
    return Brief("every rule holds; no target was named", then)


def _row(f: Finding) -> tuple[str, ...]:
    """Return the rule, its level, the operator, what is required, what was found, and the tensor."""
    place = f"{place_of(f.subgraph, f.operator)} {f.op}"
    tensor = "" if f.tensor is None else f"{f.tensor} {shown(f.name)}".rstrip()
    return f.rule, f.level.value, place, f.required, f.found, tensor


def _summaries(result: Lint) -> Iterator[Block]:
    for rule, summary in dict.fromkeys((f.rule, f.summary) for f in result.findings):
        yield Text(f"{rule}: {summary}", "faint")


def _rules(result: Lint) -> Bars:
    counts = Counter((f.rule, f.summary, f.level) for f in result.findings)
    bars = [
        Bar(f"{rule}: {summary}", count, f"{count:,}", _STYLES[level])
        for (rule, summary, level), count in counts.most_common()
    ]
    return Bars("rule", "findings", bars)


def _graph(view: ModelView, result: Lint) -> Graph:
    here: dict[int, list[Finding]] = {}
    for finding in result.findings:
        if finding.subgraph == view.inspection.subgraph:
            here.setdefault(finding.operator, []).append(finding)
    statuses = {o.index: _status(here.get(o.index, [])) for o in view.inspection.operators}
    return Graph([states("findings", statuses)], lambda i: _panel(here.get(i, [])), min(here, default=None))


def _status(findings: list[Finding]) -> tuple[str, str]:
    if not findings:
        return "good", "nothing found"
    worst = next(level for level in Level if any(f.level is level for f in findings))
    return _STYLES[worst], worst.value


def _panel(findings: list[Finding]) -> Iterable[Block]:
    for f in findings:
        tensor = "" if f.tensor is None else str(f.tensor)
        yield Text(Badge(f"{f.rule}: {f.summary}", _STYLES[f.level]))
        yield Pairs([("required", f.required), ("found", f.found), ("tensor", tensor)])


def lint_document(result: Lint, fixed_file: str | None = None, corrected: int = 0) -> LintDocument:
    """Return the document: `schemas/lint.schema.json`."""
    return {
        "schema": "tflq/lint/1",
        "model": facts_document(result.facts),
        "target": result.target or None,
        "findings": [fields_of(f) for f in result.findings],
        "fixed": None if fixed_file is None else {"file": fixed_file, "corrected": corrected},
    }
