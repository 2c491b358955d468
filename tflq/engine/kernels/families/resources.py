"""Values that subgraphs share, and operators that call subgraphs.

Resources: values that all subgraphs of an interpreter share, and that outlive runs and allocations.

A handle is a tensor that holds a resource's number; variables and hash tables share one range of numbers.
Source: LiteRT 2.3, resource_base.h GetTypedResource; resource_variable.cc; static_hashtable.cc.

Operators that call subgraphs: shared by IF, WHILE, STABLEHLO_CASE and STABLEHLO_COMPOSITE.

Each entry starts a subgraph afresh: its variables are reset and its operators prepared again, as LiteRT does between
two calls. Its inputs take the shapes of the caller's tensors.
Source: LiteRT 2.3, control_flow_common.h; if.cc Eval; subgraph.cc AllocateTensors, ReleaseMemory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

import numpy as np

from tflq.engine.kernels.kernel import CalledSubgraphs, Callee, Node, Operand, Prepared, Shape
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(slots=True, eq=False)
class Variable:
    """An array and its element type; None before the first assignment."""

    value: Array | None = None
    type: TensorType | None = None


@dataclass(slots=True, eq=False)
class Table:
    """A hash table, which is filled once."""

    key_type: TensorType
    value_type: TensorType
    entries: dict[object, object] = field(default_factory=dict)
    filled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OnVariable:
    """An eval that reaches one variable and no more of the Session. It keeps the arrays that it is given.

    `quick(data, variable, array)` does the same with a variable that exists and one array, the output or the assigned
    one, of which it keeps a copy. It returns False, and does nothing, if that could fail.
    """

    eval: Callable[..., Array | tuple[Array, ...]]
    quick: Callable[[Any, Variable, Array], bool]

    def __call__(self, data: Any, session: CalledSubgraphs, *inputs: Array) -> Array | tuple[Array, ...]:
        """Return the eval's results."""
        return self.eval(data, session, *inputs)


R = TypeVar("R", Variable, Table)


def key_of(number: int) -> tuple[str, int]:
    """Return the key of a resource among those of a Session."""
    return ("resource", number)


def require_handle(node: Node, operand: Operand) -> None:
    """Refuse a handle that has not exactly one element."""
    node.check(prod(operand.shape) == 1, "number of elements of a handle", operand, expected=1, got=operand.shape)


def resource(session: CalledSubgraphs, number: int, kind: type[R], create: R | None = None) -> R:
    """Return the resource of that number, or `create` if there is none yet."""
    key = key_of(number)
    entry = session.resources.get(key)
    if entry is None:
        if create is None:
            raise LookupError(f"resource {number} does not exist yet")
        entry = session.resources[key] = create
    if not isinstance(entry, kind):
        raise LookupError(f"resource {number} is a {type(entry).__name__.lower()}, not a {kind.__name__.lower()}")
    return entry


def eval_handle(handle: Array) -> Array:
    """Return a constant: the handle of a variable."""
    return handle


def number_of(handle: Array) -> int:
    """Return the number that a handle holds."""
    return int(handle.flat[0])


def table_of(table: Table, types: tuple[object, object]) -> Table:
    """Return `table`, if it has keys and values of those types."""
    if (table.key_type, table.value_type) != types:
        raise TypeError(f"the hash table maps {table.key_type.label} to {table.value_type.label}")
    return table


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """Subgraph numbers, only one of which is called, and whether LiteRT leaves an output of each unwritten.

    `chosen` gives the position of the one that a selector means.
    """

    subgraphs: tuple[int, ...]
    unwritten: tuple[bool, ...]
    chosen: Callable[[Array], int]


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


def prepare_branches(
    node: Node, subgraphs: Sequence[int], first: int, chosen: Callable[[Array], int]
) -> tuple[Branches, tuple[Shape | None, ...]]:
    """Bind branches to the inputs from `first` on; an output's shape is known if all branches agree on it."""
    arguments = present(node, first)
    called = [callee(node, subgraph, arguments, len(node.outputs)) for subgraph in subgraphs]
    for branch in called:
        for inner, outer in zip(branch.outputs, node.outputs, strict=True):
            _require_type(node, inner, outer)
    shapes = agree_on([branch.shapes for branch in called])
    fixed = None not in shapes
    unwritten = tuple(fixed and _repeats_an_output(branch) for branch in called)
    return Branches(tuple(subgraphs), unwritten, chosen), shapes


def agree_on(shapes: Sequence[tuple[Shape | None, ...]]) -> tuple[Shape | None, ...]:
    """Return shapes that are known and equal in all of `shapes`; None for all if one is not."""
    first = shapes[0]
    return first if None not in first and all(other == first for other in shapes) else (None,) * len(first)


def single_value(node: Node, operand: Operand) -> None:
    """Refuse a selector that has not exactly one element."""
    node.check(int(np.prod(operand.shape)) == 1, "number of elements", operand, expected=1, got=list(operand.shape))


def prepare_call(node: Node, subgraph: int) -> Prepared:
    """Prepare a call of one subgraph that takes all inputs."""
    branches, shapes = prepare_branches(node, (subgraph,), 0, lambda _: 0)
    return Prepared(shapes, branches, eval_call)


def once(subgraph: int) -> tuple[str, int]:
    """Return the key among the resources that shows that CALL_ONCE has run a subgraph."""
    return ("CALL_ONCE", subgraph)


def eval_call_once(subgraph: int, session: CalledSubgraphs) -> tuple[Array, ...]:
    """Source: call_once.cc Eval."""
    if once(subgraph) not in session.resources:
        session.enter(subgraph)(())
        session.resources[once(subgraph)] = True
    return ()


def eval_call(data: Branches, session: CalledSubgraphs, *values: Array) -> tuple[Array, ...]:
    """Return the only subgraph's outputs."""
    return take(data, session, 0, values)


def take(data: Branches, session: CalledSubgraphs, branch: int, values: Sequence[Array]) -> tuple[Array, ...]:
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
