"""A model, an inspection and an interpreter in three lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tflq.api.interpreter import Interpreter
from tflq.escaping import quoted
from tflq.inspection.operators import Inspection
from tflq.ir import Model
from tflq.report.card import Card
from tflq.report.inspect.lines import counts_text, inspection_lines, tensor_text
from tflq.report.numbers import bytes_text, counted
from tflq.report.verbs.extract import type_text

#: Operator types, and inputs or outputs, that are named.
_NAMED = 4


def inspection_card(inspection: Inspection) -> Card:
    """The model, its first input and output, and what is not supported."""
    edges = (("input", inspection.inputs), ("output", inspection.outputs))
    refused = inspection.unsupported
    then = "Next: .operators, .tensors"
    if refused:
        then = f"not supported: {', '.join(f'{o.index} {o.op}' for o in refused[:_NAMED])}; .unsupported says why"
    return Card(
        f"{inspection.model.path or 'model'}: {counts_text(inspection)}",
        "; ".join(f"{kind} {tensor_text(inspection, i)}" for kind, tensors in edges for i in tensors[:1]),
        then,
        "warning" if refused else "strong",
        lambda: inspection_lines(inspection),
    )


def model_card(model: Model) -> Card:
    """What the model is made of, its inputs and outputs, and what can be done with it."""
    graph = next(iter(model.subgraphs), None)
    operators = () if graph is None else graph.operators
    types = Counter(model.operator_codes[o.opcode_index].name for o in operators).most_common()
    named = [f"{count} {op}" for op, count in types[:_NAMED]] + ["..."] * bool(types[_NAMED:])
    size = sum(buffer.data.size for buffer in model.buffers if buffer.data is not None)
    graphs = "" if len(model.subgraphs) == 1 else f", {counted(len(model.subgraphs), 'subgraph')}"
    return Card(
        f"Model: {counted(len(operators), 'operator')} ({', '.join(named)}), {bytes_text(size)} of constants{graphs}",
        "no graph" if graph is None else f"{_edges(model, graph.inputs)} -> {_edges(model, graph.outputs)}",
        "Next: tflq.inspect(model), tflq.Interpreter(model_content=model), tflq.save(model, path)",
    )


def interpreter_card(interpreter: Interpreter) -> Card:
    """Whose arithmetic it computes, its inputs and outputs, and the calls of a run."""
    graph = interpreter.model.subgraphs[0]
    return Card(
        f"Interpreter: {counted(len(graph.operators), 'operator')} under profile {interpreter.profile.name}",
        f"{_edges(interpreter.model, graph.inputs)} -> {_edges(interpreter.model, graph.outputs)}",
        "Next: allocate_tensors(), set_tensor(index, array), invoke(), get_tensor(index)",
    )


def _edges(model: Model, tensors: Sequence[int]) -> str:
    specs = [model.subgraphs[0].tensors[t] for t in tensors]
    named = [f"{quoted(spec.name or '')} {type_text(spec)} {list(spec.shape)}" for spec in specs[:_NAMED]]
    return ", ".join([*named, *["..."] * bool(specs[_NAMED:])]) or "nothing"


CARDS: Mapping[str, Callable[[Any], Card]] = {
    "Inspection": inspection_card,
    "Interpreter": interpreter_card,
    "Model": model_card,
}
