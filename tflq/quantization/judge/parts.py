"""Parts of joint outputs, each with its own figures: one lost part can hide behind the others' signal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import GraphView, OperatorView
from tflq.quantization.judge.fidelity import Fidelity
from tflq.typing import Array

Places = NDArray[np.int64]

#: Operators that keep the order of elements, and one that moves them.
_KEEPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "QUANTIZE", "DEQUANTIZE"})
_MOST_PARTS, _MOST_DEPTH = 32, 64
#: Distinct values are counted up to this number.
MOST_VALUES = 256


@dataclass(slots=True)
class Part:
    """The elements of one output that one operand of a concatenation gives.

    `output` is its position among the outputs, `places` are flat indices of its elements there. `values` are the
    distinct values of the other model's elements, up to MOST_VALUES of them; `given` those of the reference's.
    """

    output: int
    places: Places
    fidelity: Fidelity
    values: set[float] = field(default_factory=set)
    given: set[float] = field(default_factory=set)

    def add(self, reference: Array, other: Array, scale: float, zero_point: float) -> None:
        """Count one sample of the whole output; the values of `other` are scale * (other - zero_point)."""
        ours, theirs = (np.ascontiguousarray(a).reshape(-1)[self.places] for a in (reference, other))
        self.fidelity.add(ours, theirs, scale, zero_point)
        for known, values in ((self.given, ours), (self.values, theirs)):
            if len(known) < MOST_VALUES:
                known.update(np.unique(values)[:MOST_VALUES].tolist())


def parts_of(graph: GraphView, output: int, tensor: int) -> list[Part]:
    """Return the parts of an output that a concatenation joins; none if there are fewer than two, or too many."""
    labels, origins = _labels(graph, tensor, 0)
    if not 2 <= len(origins) <= _MOST_PARTS:
        return []
    return [Part(output, np.flatnonzero(labels == k), _named(graph, origin)) for k, origin in enumerate(origins)]


def _named(graph: GraphView, tensor: int) -> Fidelity:
    maker, name = graph.maker(tensor), graph.tensors[tensor].name or ""
    return Fidelity(name, "", -1) if maker is None else Fidelity(name, maker.builtin, maker.index)


def _labels(graph: GraphView, tensor: int, depth: int) -> tuple[Places, list[int]]:
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
    labels, origins = _labels(graph, source, depth + 1)
    if len(origins) < 2 or len(labels) != len(whole[0]):
        return whole
    if maker.builtin in _KEEPING:
        return labels, origins
    order = graph.constant(maker.inputs[1]) if maker.builtin == "TRANSPOSE" and len(maker.inputs) > 1 else None
    if order is None:
        return whole
    return labels.reshape(graph.tensors[source].shape).transpose(order.tolist()).reshape(-1), origins


def _joined(graph: GraphView, op: OperatorView, tensor: int, depth: int) -> tuple[Places, list[int]] | None:
    """Return the labels of what the operator joins; None if shapes do not show them."""
    axis = 0 if op.options is None else int(op.options.get("axis") or 0)
    pieces: list[Places] = []
    origins: list[int] = []
    for source in op.inputs:
        labels, below = _labels(graph, source, depth + 1)
        if len(below) < 2 and source in origins:
            labels, below = np.full_like(labels, origins.index(source) - len(origins)), []
        pieces.append((labels + len(origins)).reshape(graph.tensors[source].shape))
        origins += below
    try:
        whole = np.concatenate(pieces, axis) if op.builtin == "CONCATENATION" else np.stack(pieces, axis)
    except ValueError:
        return None
    return (whole.reshape(-1), origins) if whole.shape == graph.tensors[tensor].shape else None
