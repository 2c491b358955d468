"""Findings about a model in lines."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.escaping import shown
from tflq.linting import Finding, Level, Lint
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

COLUMNS = (("rule", "<"), ("level", "<"), ("operator", "<"), ("required", "<"), ("found", "<"), ("tensor", "<"))


def lint_lines(result: Lint, fixed_file: str | None = None, corrected: int = 0) -> Iterator[Line]:
    """The verdict, one row a finding, and the next command."""
    yield verdict_line(result)
    if not result.findings:
        return
    yield from table(COLUMNS, map(finding_row, result.findings))
    for rule, summary in dict.fromkeys((f.rule, f.summary) for f in result.findings):
        yield Line(f"{rule}: {summary}", "faint")
    if fixed_file is not None:
        yield Line(f"{fixed_file}: {corrected} of {len(result.findings)} corrected")
    elif any(f.fixable for f in result.findings):
        yield Line(f"Next: tflq lint {quote(result.facts.path or 'MODEL')} --fix fixed.tflite", "strong")


def verdict_line(result: Lint) -> Line:
    """How many errors and warnings were found."""
    path = result.facts.path or "model"
    if not result.findings:
        return Line(f"{path}: nothing found", "good")
    errors = sum(f.level is Level.ERROR for f in result.findings)
    warnings = counted(len(result.findings) - errors, "warning")
    return Line(f"{path}: {counted(errors, 'error')}, {warnings}", "bad" if errors else "warning")


def finding_row(f: Finding) -> tuple[str, ...]:
    """Rule, level, operator, what is required and what was found, tensor."""
    place = f"{f.operator} {f.op}" if not f.subgraph else f"{f.subgraph}:{f.operator} {f.op}"
    tensor = "" if f.tensor is None else f"{f.tensor} {shown(f.name)}".rstrip()
    return f.rule, f.level.value, place, f.required, f.found, tensor
