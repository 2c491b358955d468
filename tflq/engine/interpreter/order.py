"""The order of a subgraph's reads and writes: a check, and last uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.engine.kernels.kernel import Operand
from tflq.errors import ModelError
from tflq.model.ir import GraphView


def check_order(graph: GraphView, operands: Sequence[Operand]) -> None:
    """Refuse a graph in which a tensor is read before it is made."""
    available = {o.index for o in operands if o.is_constant or o.is_variable} | set(graph.inputs)
    for op in graph.ops:
        for tensor in op.inputs:
            if tensor >= 0 and tensor not in available:
                raise ModelError(
                    "is read before it is made", index=op.index, tensor=operands[tensor].name or f"#{tensor}"
                )
        available.update(op.outputs)
    for tensor in graph.outputs:
        if tensor not in available:
            raise ModelError("graph output is never made", tensor=operands[tensor].name or f"#{tensor}")


def known_at_start(graph: GraphView, operands: Sequence[Operand]) -> list[bool]:
    """Return, by tensor, whether its shape is known before any operator has run."""
    known = [o.is_constant or o.is_variable for o in operands]
    for tensor in graph.inputs:
        known[tensor] = True
    return known


def keep_results(graph: GraphView) -> tuple[int, ...]:
    """Return tensors that a run holds to its end: the graph's outputs, then unread results.

    Source: LiteRT 2.3 arena_planner.cc ArenaPlanner::PlanAllocations, which releases a tensor after its last reader.
    """
    return tuple(dict.fromkeys((*graph.outputs, *(t for t in graph.computed if not graph.readers(t)))))


def last_uses(graph: GraphView, also: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Return, for every operator, the tensors with their last use there that are not kept.

    `also` has one more tensor for some operators.
    """
    kept = set(keep_results(graph))
    last: dict[int, int] = {}
    for op in graph.ops:
        for tensor in (*op.inputs, *op.outputs, also.get(op.index, -1)):
            if tensor >= 0 and tensor not in kept:
                last[tensor] = op.index
    uses: list[list[int]] = [[] for _ in graph.ops]
    for tensor, index in last.items():
        uses[index].append(tensor)
    return [tuple(tensors) for tensors in uses]
