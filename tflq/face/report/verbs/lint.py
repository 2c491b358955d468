"""The report of `tflq lint`: the findings about a model, by rule and by operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING

from tflq.diagnosis.linting.deployment import Deployment, Oldest
from tflq.diagnosis.linting.lint import Lint
from tflq.diagnosis.linting.rules import Finding, Level
from tflq.face.report.blocks import (
    Badge,
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    Graph,
    Headline,
    InText,
    Next,
    OnPage,
    Pairs,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.diagnosis import LintDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.graph.colouring import states
from tflq.face.report.wording import counted, listed
from tflq.model.ir.signatures import place_of
from tflq.texts import shown

if TYPE_CHECKING:
    from tflq.face.report.graph.drawing import ModelView

_COLUMNS = (("rule", "<"), ("level", "<"), ("operator", "<"), ("required", "<"), ("found", "<"), ("tensor", "<"))
#: Findings that text lists.
_MOST = 12
_STYLES = {Level.ERROR: "bad", Level.WARNING: "warning", Level.NOTE: "faint"}


def lint_report(result: Lint, fixed_file: str | None = None, corrected: int = 0, *, accepted: bool = False) -> Report:
    """Build the report; `corrected` of the findings are corrected in `fixed_file`, if there is one.

    `accepted`: a baseline accepts all of them.
    """
    path = result.facts.path or "model"
    blocks = list(_blocks(result, path, fixed_file, corrected, accepted))
    return Report("lint", blocks, about=CodeBlock(path), title=f"{path}: tflq lint")


def _blocks(result: Lint, path: str, fixed_file: str | None, corrected: int, accepted: bool) -> Iterator[Block]:
    yield _verdict(result, path, accepted)
    yield _brief(result)
    if result.targets:
        yield Section("targets", "Targets", list(_targets(result)))
    yield Section("rules", "Rules", [_rules(result)])
    rows = list(map(_row, result.findings))
    listing = TableBlock(_COLUMNS, rows, most=_MOST, rest="... and {left} more (--json has them)")
    yield InText([listing, *_summaries(result)])
    if fixed_file is not None and result.findings:
        yield Text(f"{fixed_file}: {corrected} of {len(result.findings)} corrected")
    elif any(f.fixable for f in result.findings):
        yield Next([f"tflq lint {quote(result.facts.path or 'MODEL')} --fix fixed.tflite"])
    yield OnPage(lambda view: [_graph(view, result), Section("findings", "Findings", [TableBlock(_COLUMNS, rows)])])


def _targets(result: Lint) -> Iterator[Block]:
    """Yield whether each target runs the model, the oldest releases, and the resolver as C++."""
    rows = [(one.target, _answer(one)) for one in result.targets]
    rows += [("oldest release", _oldest(one)) for one in result.oldest]
    yield Pairs(rows)
    methods = next((one.methods for one in result.targets if one.methods), ())
    if methods:
        calls = " ".join(f"resolver.{method}();" for method in methods)
        yield Text(f"tflite::MicroMutableOpResolver<{len(methods)}> resolver; {calls}")


def _answer(one: Deployment) -> str:
    if one.refused:
        return f"does not run: {one.refused}"
    if one.arena is not None:
        arena = one.arena
        parts = f"{arena.head:,} of buffers, most at {arena.peak}, and {arena.tail:,} that persist on Cortex-M"
        uncounted = f"; without kernels' memory of {listed(arena.unknown, 4)}" if arena.unknown else ""
        return f"runs in an arena of {arena.total:,} bytes: {parts}{uncounted}"
    if one.delegation is not None:
        found = one.delegation
        left = f"; the interpreter keeps {listed(found.left, 4)}" if found.left else ""
        taken = found.operators - len(found.left)
        return f"runs; XNNPACK takes {taken} of {found.operators} in {counted(found.partitions, 'partition')}{left}"
    return "runs"


def _oldest(one: Oldest) -> str:
    decides = f" ({one.decides})" if one.decides else ""
    return f"{one.family}: {one.release or 'none'}{decides}"


def _verdict(result: Lint, path: str, accepted: bool) -> Headline:
    if not result.findings:
        targets = listed([one.target for one in result.targets], 6)
        asked = f", the rules of {targets} included" if targets else ""
        return Headline(f"nothing found{asked}", "good", subject=path)
    counts = Counter(f.level for f in result.findings)
    names = [level for level in Level if counts[level] or level is not Level.NOTE]
    text = ", ".join(counted(counts[level], level.value) for level in names)
    style = "bad" if counts[Level.ERROR] and not accepted else "warning"
    return Headline(text, style, "ACCEPTED" if accepted else "", subject=path)


def _brief(result: Lint) -> Brief:
    if result.findings:
        rule, _, place, required, got, _ = _row(result.findings[0])
        fixable = sum(f.fixable for f in result.findings)
        where = f"First: operator {place}: {rule}: required {required}, found {got}"
        return Brief(where, f"Next: .findings; {fixable} can be corrected (tflq lint --fix)")
    if result.targets:
        names = listed([one.target for one in result.targets], 6)
        return Brief(f"every rule holds, those of {names} among them", "Next: tflq.verify(model)")
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
    fixed = None if fixed_file is None else {"file": fixed_file, "corrected": corrected}
    return filled(LintDocument, result, model=result.facts, fixed=fixed)
