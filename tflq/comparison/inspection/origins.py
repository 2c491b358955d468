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
#: Larger tensors are not followed: no output is read that has more elements.
MOST_ELEMENTS = 1 << 23

Origins = tuple[Places, list[int]]


def origins_of(graph: GraphView, tensor: int) -> Origins:
    """Return for each element of a tensor the number of the joined tensor that it comes from, flat, and these tensors.

    A tensor that nothing joins is its own only origin.
    """
    return _origins(graph, tensor, 0, {})


def _origins(graph: GraphView, tensor: int, depth: int, known: dict[int, Origins]) -> Origins:
    if tensor not in known:
        known[tensor] = _find(graph, tensor, depth, known)
    return known[tensor]


def _find(graph: GraphView, tensor: int, depth: int, known: dict[int, Origins]) -> Origins:
    count = math.prod(graph.tensors[tensor].shape)
    if depth and count > MOST_ELEMENTS:
        return np.zeros(0, np.int64), [tensor]
    whole = np.zeros(count, np.int64), [tensor]
    maker = graph.maker(tensor)
    if maker is None or depth == _MOST_DEPTH or not maker.inputs or min(graph.tensors[tensor].shape, default=1) < 1:
        return whole
    if maker.builtin in ("CONCATENATION", "PACK"):
        return _join(graph, maker, tensor, depth, known) or whole
    source = maker.inputs[0]
    if maker.builtin not in _KEEPING and maker.builtin != "TRANSPOSE":
        return whole
    labels, origins = _origins(graph, source, depth + 1, known)
    if len(origins) < 2 or len(labels) != len(whole[0]):
        return whole
    if maker.builtin in _KEEPING:
        return labels, origins
    order = graph.constant(maker.inputs[1]) if len(maker.inputs) > 1 else None
    shape = graph.tensors[source].shape
    if order is None or sorted(order.tolist()) != list(range(len(shape))):
        return whole
    return labels.reshape(shape).transpose(order.tolist()).reshape(-1), origins


def _join(graph: GraphView, op: OperatorView, tensor: int, depth: int, known: dict[int, Origins]) -> Origins | None:
    """Return the labels of what the operator joins; None if shapes do not show them."""
    axis = 0 if op.options is None else int(op.options.get("axis") or 0)
    pieces: list[Places] = []
    origins: list[int] = []
    for source in op.inputs:
        labels, below = _origins(graph, source, depth + 1, known)
        if len(below) < 2 and source in origins:
            labels, below = np.full_like(labels, origins.index(source) - len(origins)), []
        if len(labels) != math.prod(graph.tensors[source].shape):
            return None
        pieces.append((labels + len(origins)).reshape(graph.tensors[source].shape))
        origins += below
    try:
        whole = np.concatenate(pieces, axis) if op.builtin == "CONCATENATION" else np.stack(pieces, axis)
    except ValueError:
        return None
    return (whole.reshape(-1), origins) if whole.shape == graph.tensors[tensor].shape else None
