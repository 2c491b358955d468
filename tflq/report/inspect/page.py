"""`tflq inspect` as a page: the model as a graph, its operators, its memory."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.inspection.operators import Inspection
from tflq.report.blocks import Bar
from tflq.report.graph.standard import ModelView, graph_section, memory_section
from tflq.report.html.page import page
from tflq.report.html.parts import bars, code, details, listing, next_section, operator_link, section, table, together
from tflq.report.inspect.lines import OPERATOR_COLUMNS, operator_row, tensor_text
from tflq.report.numbers import bytes_text, counted, short

#: Operators with the most multiply-accumulates that are charted.
_LARGEST = 20


def inspect_page(view: ModelView, focus: int | None = None) -> str:
    """The page of an inspection; `focus` is the operator that is told of at the start."""
    inspection = view.inspection
    constants = sum(tensor.bytes for tensor in inspection.tensors)
    edges = [
        f"{kind} {tensor_text(inspection, index)}"
        for kind, indices in (("input", inspection.inputs), ("output", inspection.outputs))
        for index in indices
    ]
    operators = counted(len(inspection.operators), "operator")
    return page(
        "inspect",
        f"{operators}, {short(inspection.macs)} MACs, {bytes_text(constants)} of constants",
        section(
            "refused",
            f"Not supported under {inspection.profile}",
            listing(f"{o.index} {o.op}: {o.reason}" for o in inspection.unsupported),
        ),
        graph_section(view, focus=focus),
        section(
            "operators",
            "Operators",
            bars("operator", "multiply-accumulates", list(_largest(inspection))),
            details(
                f"{operators} with the constants they were prepared with",
                table(OPERATOR_COLUMNS, (_row(inspection, index) for index in range(len(inspection.operators)))),
            ),
        ),
        memory_section(view.model),
        next_section([f"tflq verify {inspection.model.path or 'MODEL'}"]),
        title=f"{inspection.model.path or 'model'}: tflq inspect",
        facts=[
            together(
                code(inspection.model.path or "model"),
                f" {inspection.model.size:,} bytes, SHA-256 {inspection.model.sha256}",
            ),
            f"profile {inspection.profile}",
            *edges,
        ],
    )


def _row(inspection: Inspection, index: int) -> list[object]:
    operator = inspection.operators[index]
    return [
        *operator_row(inspection, operator)[:1],
        operator_link(index, operator.op),
        *operator_row(inspection, operator)[2:],
    ]


def _largest(inspection: Inspection) -> Iterator[Bar]:
    ranked = sorted((o for o in inspection.operators if o.macs), key=lambda o: -o.macs)
    for operator in ranked[:_LARGEST]:
        share = operator.macs / inspection.macs
        yield Bar(operator_link(operator.index, operator.op), operator.macs, f"{short(operator.macs)} ({share:.1%})")
