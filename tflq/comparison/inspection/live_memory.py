"""Bytes of activations that a model holds at every step: a lower bound for a runtime's arena."""

from __future__ import annotations

import math

from tflq.model.ir import STORED_BITS, GraphView, Model, TensorType, view


def live_bytes(model: Model) -> tuple[int, ...]:
    """Return the bytes held while each operator of the first subgraph runs.

    These are its operands, and tensors that later operators still read. Shapes are those of the file, an open dimension
    counts as 1. Constants do not count; graph inputs are held until their last reader, graph outputs to the end.
    """
    graph = view(model)
    last = {tensor: len(graph.ops) - 1 for tensor in graph.outputs}
    first = dict.fromkeys(graph.inputs, 0)
    for op in graph.ops:
        for tensor in op.outputs:
            first.setdefault(tensor, op.index)
            last.setdefault(tensor, op.index)
        for tensor in op.inputs:
            if tensor in first and tensor not in graph.outputs:
                last[tensor] = op.index
    change = [0] * (len(graph.ops) + 1)
    for tensor, start in first.items():
        if tensor in last:
            change[start] += _size(graph, tensor)
            change[last[tensor] + 1] -= _size(graph, tensor)
    live, steps = 0, []
    for step in change[:-1]:
        live += step
        steps.append(live)
    return tuple(steps)


def _size(graph: GraphView, tensor: int) -> int:
    if not 0 <= tensor < len(graph.tensors):
        return 0
    spec = graph.tensors[tensor]
    bits = STORED_BITS.get(spec.type, 0) if isinstance(spec.type, TensorType) else 0
    return -(-math.prod(max(extent, 1) for extent in spec.shape) * bits // 8)
