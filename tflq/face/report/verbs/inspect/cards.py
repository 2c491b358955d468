"""Cards of a model and of an interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tflq.engine.api.interpreter import Interpreter
from tflq.escaping import quoted
from tflq.face.report.blocks import Brief, Report, Verdict
from tflq.face.report.numbers import bytes_text, counted
from tflq.face.report.verbs.extract import type_text
from tflq.model.ir import Model, view

#: Operator types, and inputs or outputs, that are named.
_NAMED = 4


def model_card(model: Model) -> Report:
    """Build the report of a model: its operators by type, its inputs and outputs."""
    graph = view(model) if model.subgraphs else None
    operators = () if graph is None else graph.ops
    types = Counter(op.builtin for op in operators).most_common()
    named = [f"{count} {op}" for op, count in types[:_NAMED]] + ["..."] * bool(types[_NAMED:])
    size = sum(buffer.data.size for buffer in model.buffers if buffer.data is not None)
    graphs = "" if len(model.subgraphs) == 1 else f", {counted(len(model.subgraphs), 'subgraph')}"
    what = f"Model: {counted(len(operators), 'operator')} ({', '.join(named)}), {bytes_text(size)} of constants{graphs}"
    where = "no graph" if graph is None else f"{_edges(model, graph.inputs)} -> {_edges(model, graph.outputs)}"
    then = "Next: tflq.inspect(model), tflq.Interpreter(model_content=model), tflq.save(model, path)"
    return Report("inspect", [Verdict(what), Brief(where, then)])


def interpreter_card(interpreter: Interpreter) -> Report:
    """Build the report of an interpreter: its profile, its inputs and outputs, the calls of a run."""
    graph = view(interpreter.model)
    what = f"Interpreter: {counted(len(graph.ops), 'operator')} under profile {interpreter.profile.name}"
    where = f"{_edges(interpreter.model, graph.inputs)} -> {_edges(interpreter.model, graph.outputs)}"
    then = "Next: allocate_tensors(), set_tensor(index, array), invoke(), get_tensor(index)"
    return Report("inspect", [Verdict(what), Brief(where, then)])


def _edges(model: Model, tensors: Sequence[int]) -> str:
    specs = [view(model).tensors[t] for t in tensors]
    named = [f"{quoted(spec.name or '')} {type_text(spec)} {list(spec.shape)}" for spec in specs[:_NAMED]]
    return ", ".join([*named, *["..."] * bool(specs[_NAMED:])]) or "nothing"
