"""Where the elements of a tensor come from: the tensors that concatenations on the way joined."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import GraphView, OperatorView

Places = NDArray[np.int64]

#: Operators that keep the order of elements.
_KEEPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "QUANTIZE", "DEQUANTIZE"})
_MOST_DEPTH = 64


def origins_of(graph: GraphView, tensor: int, depth: int = 0) -> tuple[Places, list[int]]:
    """Return for each element of a tensor the number of the joined tensor that it comes from, flat, and these tensors.

    A tensor that nothing joins is its own only origin.
    """
    whole = np.zeros(math.prod(graph.tensors[tensor].shape), np.int64), [tensor]
    maker = graph.maker(tensor)
    if maker is None or depth == _MOST_DEPTH or not maker.inputs or min(graph.tensors[tensor].shape, default=1) < 1:
        return whole
    if maker.builtin in ("CONCATENATION", "PACK"):
        return _joined(graph, maker, tensor, depth) or whole
    source = maker.inputs[0]
    if maker.builtin not in _KEEPING and maker.builtin != "TRANSPOSE":
        return whole
    labels, origins = origins_of(graph, source, depth + 1)
    if len(origins) < 2 or len(labels) != len(whole[0]):
        return whole
    if maker.builtin in _KEEPING:
        return labels, origins
    order = graph.constant(maker.inputs[1]) if len(maker.inputs) > 1 else None
    shape = graph.tensors[source].shape
    if order is None or sorted(order.tolist()) != list(range(len(shape))):
        return whole
    return labels.reshape(shape).transpose(order.tolist()).reshape(-1), origins


def _joined(graph: GraphView, op: OperatorView, tensor: int, depth: int) -> tuple[Places, list[int]] | None:
    """Return the labels of what the operator joins; None if shapes do not show them."""
    axis = 0 if op.options is None else int(op.options.get("axis") or 0)
    pieces: list[Places] = []
    origins: list[int] = []
    for source in op.inputs:
        labels, below = origins_of(graph, source, depth + 1)
        if len(below) < 2 and source in origins:
            labels, below = np.full_like(labels, origins.index(source) - len(origins)), []
        pieces.append((labels + len(origins)).reshape(graph.tensors[source].shape))
        origins += below
    try:
        whole = np.concatenate(pieces, axis) if op.builtin == "CONCATENATION" else np.stack(pieces, axis)
    except ValueError:
        return None
    return (whole.reshape(-1), origins) if whole.shape == graph.tensors[tensor].shape else None
