"""`tflq lint` as a page: findings by rule, and where in the model they are."""

from __future__ import annotations

from collections import Counter
from shlex import quote

from markupsafe import Markup

from tflq.linting import Finding, Level, Lint
from tflq.report.blocks import Bar
from tflq.report.graph.colouring import states
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html.page import page
from tflq.report.html.parts import bars, code, facts, next_section, note, section, table, together
from tflq.report.lint.lines import COLUMNS, finding_row
from tflq.report.numbers import counted

_STYLES = {Level.ERROR: "bad", Level.WARNING: "warning"}


def lint_page(view: ModelView, result: Lint) -> str:
    """The page of the findings about a model."""
    path = result.facts.path or "model"
    errors = sum(f.level is Level.ERROR for f in result.findings)
    warnings = len(result.findings) - errors
    here: dict[int, list[Finding]] = {}
    for finding in result.findings:
        if not finding.subgraph:
            here.setdefault(finding.operator, []).append(finding)
    statuses = {o.index: _status(here.get(o.index, [])) for o in view.inspection.operators}
    fixable = [f"tflq lint {quote(path)} --fix fixed.tflite"] if any(f.fixable for f in result.findings) else []
    return page(
        "lint",
        f"{counted(errors, 'error')}, {counted(warnings, 'warning')}" if result.findings else "nothing found",
        _rules(result),
        next_section(fixable),
        graph_section(view, [states("findings", statuses)], lambda i: _panel(here.get(i, [])), min(here, default=None)),
        section("findings", "Findings", table(COLUMNS, map(finding_row, result.findings)) if result.findings else ""),
        title=f"{path}: tflq lint",
        facts=[code(path)],
    )


def _rules(result: Lint) -> Markup:
    counts = Counter((f.rule, f.summary, f.level) for f in result.findings)
    drawn = [
        Bar(f"{rule}: {summary}", count, f"{count:,}", _STYLES[level])
        for (rule, summary, level), count in counts.most_common()
    ]
    return section("rules", "Rules", bars("rule", "findings", drawn))


def _status(findings: list[Finding]) -> tuple[str, str]:
    if not findings:
        return "good", "nothing found"
    worst = Level.ERROR if any(f.level is Level.ERROR for f in findings) else Level.WARNING
    return _STYLES[worst], worst.value


def _panel(findings: list[Finding]) -> Markup:
    return together(
        *(
            together(
                note(f"{f.rule}: {f.summary}", _STYLES[f.level]),
                facts([("required", f.required), ("found", f.found), ("tensor", "" if f.tensor is None else f.tensor)]),
            )
            for f in findings
        )
    )
