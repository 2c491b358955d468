"""`tflq verify` as a page: the verdict, the first operator that differs, and every operator in the graph."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from tflq.escaping import quoted
from tflq.report.graph.colouring import Colouring
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html.differences import difference_colourings, distance_figure
from tflq.report.html.page import page
from tflq.report.html.parts import (
    code,
    commands,
    details,
    note,
    operator_link,
    paragraph,
    section,
    side_by_side,
    table,
    together,
)
from tflq.report.layout import counted
from tflq.report.names import short_name
from tflq.report.verify.lines import (
    OPERATOR_COLUMNS,
    STYLES,
    coverage_texts,
    next_steps,
    operator_row,
    promise_texts,
    sides_of,
    summary,
    tensor_texts,
    what_ran,
)
from tflq.verification.report import Report
from tflq.verification.results import OperatorResult, Status, TensorResult

_SHADES = {Status.EXACT: "good", Status.CLOSE: "warning", Status.DIFFERS: "bad", Status.NOT_COMPARED: "unknown"}


def verify_page(view: ModelView, report: Report) -> str:
    """The page of a verification; `view` is of its model under the same profile."""
    first = report.first_divergent
    operators = {operator.index: operator for operator in report.operators}

    def panel(index: int) -> Markup:
        return _panel(report, operators[index]) if index in operators else Markup("")

    graph = graph_section(view, verify_colourings(report), panel, None if first is None else first.index)
    path = report.model.path or "the model"
    return page(
        "verify",
        summary(report).removeprefix(f"{path}: "),
        _first(report),
        section("next", "Next", commands(text.removeprefix("Next: ") for text in next_steps(report))),
        section("notes", "Notes", *(note(text, "warning") for text in report.notes)),
        graph,
        section("operators", "Operators", _table(report)),
        section("outputs", "Outputs", *(_output(report, tensor) for tensor in report.outputs)),
        title=f"{report.verdict.value.upper()}: {report.model.path or 'model'}",
        word=report.verdict.value,
        tone=STYLES[report.verdict],
        facts=[code(path), *promise_texts(report), *coverage_texts(report), what_ran(report)],
    )


def verify_colourings(report: Report) -> tuple[Colouring, ...]:
    """Return colourings of operators by difference and by status (first if nothing differs); none without operators."""
    if not report.operators:
        return ()
    differences = {o.index: [t.difference for t in o.tensors if t.difference is not None] for o in report.operators}
    statuses = {o.index: (_SHADES[o.status], o.status.value) for o in report.operators}
    largest, share, status = difference_colourings(differences, statuses)
    return (status, largest, share) if report.first_divergent is None else (largest, share, status)


def _first(report: Report) -> Markup:
    first = report.first_divergent
    if first is None or first.worst is None:
        return Markup("")
    title = f"First divergent operator: {first.index} {first.op} (version {first.version})"
    texts = tensor_texts(first.worst, first.constants, sides_of(report))
    return section("first", title, *(paragraph(text.strip()) for text in texts), _figure(first.worst))


def _figure(tensor: TensorResult) -> Markup:
    d = tensor.difference
    if d is None or not d.histogram:
        return Markup("")
    return side_by_side(distance_figure(d, _named(tensor), "got - expected"))


def _named(tensor: TensorResult) -> str:
    return f"tensor {tensor.index} {quoted(short_name(tensor.name))}"


def _panel(report: Report, operator: OperatorResult) -> Markup:
    style = {"unknown": "soft"}.get(_SHADES[operator.status], _SHADES[operator.status])
    return together(
        note(operator.status.value + (f": {operator.reason}" if operator.reason else ""), style),
        *(_tensor(report, tensor) for tensor in operator.tensors if tensor.status != Status.EXACT),
    )


def _tensor(report: Report, tensor: TensorResult) -> Markup:
    d = tensor.difference
    if d is None:
        return paragraph(f"{_named(tensor)}: {tensor.reason or 'not compared'}", "soft")
    if d.same:
        gaps = f"; {tensor.reason}" if tensor.reason else ""
        return paragraph(f"{_named(tensor)}: all {d.elements:,} elements are the same{gaps}")
    texts = list(tensor_texts(tensor, None, sides_of(report)))
    return together(*(paragraph(text.strip()) for text in texts), _figure(tensor))


def _output(report: Report, tensor: TensorResult) -> Markup:
    if tensor.covered_by is None:
        return _tensor(report, tensor)
    return paragraph(f"{_named(tensor)}: {tensor.status.value}, as a result of operator {tensor.covered_by}")


def _table(report: Report) -> Markup:
    def rows(operators: list[OperatorResult]) -> Iterator[list[object]]:
        for operator in operators:
            row = operator_row(operator)
            yield [row[0], operator_link(operator.index, operator.op), *row[2:]]

    listed = [o for o in report.operators if o.status != Status.EXACT]
    exact = [o for o in report.operators if o.status == Status.EXACT]
    parts = [table(OPERATOR_COLUMNS, rows(listed))] if listed else []
    if exact:
        parts.append(details(f"{counted(len(exact), 'operator')} exact", table(OPERATOR_COLUMNS, rows(exact))))
    return together(*parts)
