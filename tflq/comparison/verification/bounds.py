"""Bounds of integer inputs, from the operators that they index: token ids below the vocabulary, positions in the cache.

An input is followed through operators that pass its values on, into composites, to the operators that index with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.model.ir import GraphView, Model, OperatorView, view
from tflq.model.ir.signatures import call

#: Operators that pass values on: the positions of the operands that do, None for all.
_PASSES: Mapping[str, tuple[int, ...] | None] = MappingProxyType(
    {
        **dict.fromkeys(("RESHAPE", "CAST", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE", "TRANSPOSE"), (0,)),
        **dict.fromkeys(("BROADCAST_TO", "TILE", "UNPACK", "SPLIT_V"), (0,)),
        **dict.fromkeys(("CONCATENATION", "PACK", "STABLEHLO_COMPOSITE"), None),
        "SPLIT": (1,),
        "SELECT": (1, 2),
        "SELECT_V2": (1, 2),
    }
)
#: Operand positions that hold indices: operator -> (position of the indices, position of the indexed operand).
_INDEXED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"GATHER": (1, 0), "GATHER_ND": (1, 0), "EMBEDDING_LOOKUP": (0, 1)}
)
#: Number of tensors that are followed at most, in all subgraphs.
_MOST = 2000


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest index that an input may hold; 0 is the smallest.

    `start` is the largest start of an update in a tensor, if the input holds positions; None if it holds none.
    """

    largest: int
    start: int | None = None


def bind_of(model: Model, tensor: int) -> Bound | None:
    """Return the bound of an input of the first subgraph; None if no operator indexes with it."""
    largest, starts = list[int](), list[int]()
    for op, position in _uses(model, tensor):
        indices, indexed = _INDEXED.get(op.builtin, (-1, -1))
        if position == indices:
            size = _size(op, op.graph.tensors[op.inputs[indexed]].shape)
            largest.append(max(size - 1, 0))
        elif op.builtin == "DYNAMIC_UPDATE_SLICE" and position == 2:
            whole, part = (op.graph.tensors[op.inputs[k]].shape for k in (0, 1))
            starts.append(max((a - b for a, b in zip(whole, part)), default=0))  # noqa: B905 (files may differ)
    if not largest and not starts:
        return None
    return Bound(min((*largest, *([] if largest else starts))), max(min(starts), 0) if starts else None)


def _size(op: OperatorView, shape: tuple[int, ...]) -> int:
    if op.builtin == "GATHER_ND":
        return min(shape, default=1) if len(op.inputs) < 2 else _gather(op, shape)
    axis = int(op.options.get("axis", 0) or 0) if op.options and op.builtin == "GATHER" else 0
    return shape[axis] if -len(shape) <= axis < len(shape) else 1


def _gather(op: OperatorView, shape: tuple[int, ...]) -> int:
    """Return the smallest dimension that GATHER_ND's indices address: as many as their last dimension."""
    indices = op.graph.tensors[op.inputs[1]].shape
    return min(shape[: indices[-1]] if indices else shape, default=1)


def _uses(model: Model, tensor: int) -> Iterator[tuple[OperatorView, int]]:
    """Yield the operators that read an input's values, with the operand's position."""
    waiting, seen = [(0, tensor)], set[tuple[int, int]]()
    while waiting and len(seen) < _MOST:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        graph = view(model, place[0])
        for op in graph.readers(place[1]):
            for position in (k for k, t in enumerate(op.inputs) if t == place[1]):
                yield op, position
                waiting += _pass(model, graph, op, position, place[0])


def _pass(model: Model, graph: GraphView, op: OperatorView, position: int, subgraph: int) -> Iterator[tuple[int, int]]:
    passing = _PASSES.get(op.builtin, ())
    if passing is not None and position not in passing:
        return
    for index in call(op.record):
        inputs = view(model, index).inputs if 0 <= index < len(model.subgraphs) else ()
        yield from ((index, t) for k, t in enumerate(inputs) if k == position)
    if op.builtin != "STABLEHLO_COMPOSITE":
        yield from ((subgraph, t) for t in op.outputs if t >= 0)
