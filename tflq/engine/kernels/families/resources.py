"""Resources: values that all subgraphs of an interpreter share, and that outlive runs and allocations.

A handle is a tensor that holds a resource's number; variables and hash tables share one range of numbers.
Source: LiteRT 2.3, resource_base.h GetTypedResource; resource_variable.cc; static_hashtable.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from tflq.engine.kernels.kernel import Node, Operand, Session
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

    def __call__(self, data: Any, session: Session, *inputs: Array) -> Array | tuple[Array, ...]:
        """Return the eval's results."""
        return self.eval(data, session, *inputs)


R = TypeVar("R", Variable, Table)


def key_of(number: int) -> tuple[str, int]:
    """Return the key of a resource among those of a Session."""
    return ("resource", number)


def require_handle(node: Node, operand: Operand) -> None:
    """Refuse a handle that has not exactly one element."""
    node.check(prod(operand.shape) == 1, "number of elements of a handle", operand, expected=1, got=operand.shape)


def resource(session: Session, number: int, kind: type[R], create: R | None = None) -> R:
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
