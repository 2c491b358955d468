"""Operators that call subgraphs: shared by IF, WHILE, STABLEHLO_CASE and STABLEHLO_COMPOSITE.

Each entry starts a subgraph afresh: its variables are reset and its operators prepared again, as LiteRT does between
two calls. Its inputs take the shapes of the caller's tensors.
Source: LiteRT 2.3, control_flow_common.h; if.cc Eval; subgraph.cc AllocateTensors, ReleaseMemory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.kernel import Callee, Node, Operand, Prepared, Session, Shape
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """Subgraphs of which one is called, by number; of each, whether LiteRT leaves an output unwritten."""

    subgraphs: tuple[int, ...]
    unwritten: tuple[bool, ...]


def present(node: Node, first: int = 0) -> tuple[Operand, ...]:
    """Return the inputs from position `first` on, none of which may be absent."""
    return tuple(node.input(position) for position in range(first, len(node.inputs)))


def callee(node: Node, subgraph: int, arguments: Sequence[Operand], outputs: int) -> Callee:
    """Bind the subgraph to the arguments' shapes. Types and numbers of inputs and outputs must be the caller's."""
    called = node.around().subgraph(subgraph, [operand.shape for operand in arguments])
    for inner, outer in zip(called.inputs, arguments, strict=True):
        _require_type(node, inner, outer)
    node.check(len(called.outputs) == outputs, "subgraph outputs", expected=outputs, got=len(called.outputs))
    return called


def prepare_branches(node: Node, subgraphs: Sequence[int], first: int) -> tuple[Branches, tuple[Shape | None, ...]]:
    """Bind branches to the inputs from `first` on; an output's shape is known if all branches agree on it."""
    arguments = present(node, first)
    called = [callee(node, subgraph, arguments, len(node.outputs)) for subgraph in subgraphs]
    for branch in called:
        for inner, outer in zip(branch.outputs, node.outputs, strict=True):
            _require_type(node, inner, outer)
    shapes = agree_on([branch.shapes for branch in called])
    fixed = None not in shapes
    return Branches(tuple(subgraphs), tuple(fixed and _repeats_an_output(branch) for branch in called)), shapes


def agree_on(shapes: Sequence[tuple[Shape | None, ...]]) -> tuple[Shape | None, ...]:
    """Return shapes that are known and equal in all of `shapes`; None for all if one is not."""
    first = shapes[0]
    return first if None not in first and all(other == first for other in shapes) else (None,) * len(first)


def single_value(node: Node, operand: Operand) -> None:
    """Refuse a selector that has not exactly one element."""
    node.check(int(np.prod(operand.shape)) == 1, "number of elements", operand, expected=1, got=list(operand.shape))


def prepare_call(node: Node, subgraph: int) -> Prepared:
    """Prepare a call of one subgraph that takes all inputs."""
    branches, shapes = prepare_branches(node, (subgraph,), 0)
    return Prepared(shapes, branches, eval_call)


def once(subgraph: int) -> tuple[str, int]:
    """Return the key among the resources that shows that CALL_ONCE has run a subgraph."""
    return ("CALL_ONCE", subgraph)


def eval_call_once(subgraph: int, session: Session) -> tuple[Array, ...]:
    """Source: call_once.cc Eval."""
    if once(subgraph) not in session.resources:
        session.enter(subgraph)(())
        session.resources[once(subgraph)] = True
    return ()


def eval_call(data: Branches, session: Session, *values: Array) -> tuple[Array, ...]:
    """Return the only subgraph's outputs."""
    return take(data, session, 0, values)


def take(data: Branches, session: Session, branch: int, values: Sequence[Array]) -> tuple[Array, ...]:
    """Return the outputs of one branch, counted from 0."""
    if data.unwritten[branch]:
        raise UndefinedResultError("Eval_static", "one tensor is two outputs of the subgraph: LiteRT writes only one")
    return session.enter(data.subgraphs[branch])(values)


def _repeats_an_output(called: Callee) -> bool:
    """Return whether a tensor that the subgraph computes is more than one of its outputs."""
    inputs = {operand.index for operand in called.inputs}
    computed = [o.index for o in called.outputs if o.index not in inputs and not o.is_constant]
    return len(computed) != len(set(computed))


def _require_type(node: Node, inner: Operand, outer: Operand) -> None:
    node.check(
        inner.type == outer.type,
        "element type of a called subgraph's tensor",
        inner,
        expected=outer.type.label,
        got=inner.type.label,
    )
