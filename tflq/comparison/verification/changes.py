"""The changes between releases that explain why two runtimes differ on a model."""

from __future__ import annotations

from collections.abc import Iterable

from tflq.engine.profiles.history import Change, changes_between
from tflq.model.ir import Model, TensorType, view


def known_changes(model: Model, operators: Iterable[int], one: str, other: str) -> tuple[Change, ...]:
    """Return what releases changed between two profiles in these operators, each change once."""
    graph = view(model)
    found: dict[Change, None] = {}
    for op in (graph.op(index) for index in operators):
        ends = [graph.tensors[t].type for t in (*op.inputs[:1], *op.outputs[:1]) if t >= 0]
        types = {type_.name.lower() for type_ in ends if isinstance(type_, TensorType)}
        found |= dict.fromkeys(changes_between(one, other, op.builtin, types))
    return tuple(found)
