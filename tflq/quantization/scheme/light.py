"""Operators behind the last ones with weights, which cost next to nothing in any type."""

from __future__ import annotations

from tflq.engine.kernels.facts import OPERATORS
from tflq.model.ir import OperatorView
from tflq.quantization.scheme.float_graph import FloatModel

#: Weights of this number of elements or fewer, as those that average a distribution's bins, cost nothing.
_FEW_WEIGHTS = 64


def tail_region(floats: FloatModel) -> frozenset[int]:
    """Return the operators behind the last ones with weights on every way; none if no operator has weights."""
    graph, chosen, has_heavy = floats.graph, set[int](), False
    for op in reversed(graph.ops):
        heavy = _is_heavy(floats, op)
        has_heavy |= heavy
        readers = {reader.index for t in op.outputs for reader in graph.readers(t)}
        if not heavy and readers <= chosen and any(map(floats.is_float, op.outputs)):
            chosen.add(op.index)
    return frozenset(chosen) if has_heavy else frozenset()


def _is_heavy(floats: FloatModel, op: OperatorView) -> bool:
    fact = OPERATORS.get(op.name)
    if fact is None or fact.products is None:
        return False
    weights = floats.constants.get(op.inputs[1]) if len(op.inputs) > 1 else None
    return weights is None or weights.size > _FEW_WEIGHTS
