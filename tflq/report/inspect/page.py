"""`tflq inspect` as a page: the model as a graph, its operators, its memory."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.inspection.operators import Inspection
from tflq.report.graph.standard import ModelView, graph_section, memory_section
from tflq.report.html.page import page
from tflq.report.html.parts import (
    Bar,
    bars,
    code,
    details,
    listing,
    next_section,
    operator_link,
    section,
    table,
    together,
)
from tflq.report.inspect.lines import OPERATOR_COLUMNS, operator_row, tensor_text
from tflq.report.layout import counted
from tflq.report.numbers import bytes_text, short

#: Operators with the most multiply-accumulates that are charted.
_LARGEST = 20


def inspect_page(view: ModelView, focus: int | None = None) -> str:
    """The page of an inspection; `focus` is the operator that is told of at the start."""
    found = view.inspection
    constants = sum(tensor.bytes for tensor in found.tensors)
    edges = [
        f"{kind} {tensor_text(found, index)}"
        for kind, indices in (("input", found.inputs), ("output", found.outputs))
        for index in indices
    ]
    return page(
        "inspect",
        f"{counted(len(found.operators), 'operator')}, {short(found.macs)} MACs, {bytes_text(constants)} of constants",
        section(
            "refused",
            f"Not supported under {found.profile}",
            listing(f"{o.index} {o.op}: {o.reason}" for o in found.unsupported),
        ),
        graph_section(view, focus=focus),
        section(
            "operators",
            "Operators",
            bars("operator", "multiply-accumulates", list(_largest(found))),
            details(
                f"{counted(len(found.operators), 'operator')} with the constants they were prepared with",
                table(OPERATOR_COLUMNS, (_row(found, index) for index in range(len(found.operators)))),
            ),
        ),
        memory_section(view.model),
        next_section([f"tflq verify {found.model.path or 'MODEL'}"]),
        title=f"{found.model.path or 'model'}: tflq inspect",
        facts=[
            together(code(found.model.path or "model"), f" {found.model.size:,} bytes, SHA-256 {found.model.sha256}"),
            f"profile {found.profile}",
            *edges,
        ],
    )


def _row(found: Inspection, index: int) -> list[object]:
    operator = found.operators[index]
    return [*operator_row(found, operator)[:1], operator_link(index, operator.op), *operator_row(found, operator)[2:]]


def _largest(found: Inspection) -> Iterator[Bar]:
    ranked = sorted((o for o in found.operators if o.macs), key=lambda o: -o.macs)
    for operator in ranked[:_LARGEST]:
        share = operator.macs / found.macs
        yield Bar(operator_link(operator.index, operator.op), operator.macs, f"{short(operator.macs)} ({share:.1%})")
