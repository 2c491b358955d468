"""Joined outputs split into one output for each part, so that each has a scale of its own."""

from __future__ import annotations

from dataclasses import replace

from tflq.comparison.inspection.layout import groups_of, layout_of, merge
from tflq.errors import ModelError
from tflq.model.ir import GraphView, Model, OperatorView, view, with_graph


def split_outputs(model: Model) -> Model:
    """Return the model with the operands of the CONCATENATIONs that make its joint outputs as outputs of their own.

    The parts take the place of the joint output, in order. In signatures, their names are the output's with a number
    appended. Outputs of one meaning stay.

    Raises:
        ModelError: No output joins parts of different meanings, or operators between the CONCATENATION and the output
            keep it from being split.
    """
    graph = view(model)
    layout = layout_of(graph)
    joint = {t for k, t in enumerate(layout.tensors) if sum(group.output == k for group in layout.groups) > 1}
    parts = {t: _parts(graph, t) for t in graph.outputs if t in joint}
    if not any(len(found) > 1 for found in parts.values()):
        reason = "no output joins parts of different meanings" if not joint else "the joint output cannot be split"
        raise ModelError(f"{reason}: --split-outputs needs a CONCATENATION of whole parts that makes an output")
    outputs = tuple(dict.fromkeys(part for t in graph.outputs for part in parts.get(t, [t])))
    gone = {t for t, found in parts.items() if len(found) > 1}
    operators = tuple(op.record for op in graph.ops if not _is_unused(graph, op, gone))
    changed = with_graph(model, replace(graph.record, outputs=outputs, operators=operators))
    if model.signature_defs is None:
        return changed
    signatures = tuple(
        s
        if s.subgraph_index
        else replace(s, outputs=tuple(pair for name, t in s.outputs for pair in _name(name, parts.get(t, [t]))))
        for s in model.signature_defs
    )
    return replace(changed, signature_defs=signatures)


def _name(name: str, parts: list[int]) -> list[tuple[str, int]]:
    return [(name if len(parts) == 1 else f"{name}_{number}", part) for number, part in enumerate(parts)]


def _parts(graph: GraphView, tensor: int) -> list[int]:
    """Return the operands of the CONCATENATION that makes a tensor; the tensor itself if another operator does."""
    maker = graph.maker(tensor)
    if maker is None or maker.builtin != "CONCATENATION" or graph.readers(tensor) or _has_activation(maker):
        return [tensor]
    parts = list(dict.fromkeys(maker.inputs))
    whole = all(graph.maker(part) is not None and len(merge(groups_of(graph, 0, part))) == 1 for part in parts)
    return parts if whole and len(parts) > 1 else [tensor]


def _has_activation(op: OperatorView) -> bool:
    return op.options is not None and bool(op.options.get("fused_activation_function"))


def _is_unused(graph: GraphView, op: OperatorView, gone: set[int]) -> bool:
    return op.builtin == "CONCATENATION" and set(op.outputs) <= gone
