"""Checks of operands for prepare, and the ends of integer types.

The least and the greatest code of each integer type.

Checks of operands for prepare: types, quantization and ranks; integers and axes of shape operands.
"""

from __future__ import annotations

from types import MappingProxyType

from tflq.engine.kernels.kernel import Node, Operand, Shape
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER, TensorType

#: Limits of the types that are carried in wider ones.
NARROW = MappingProxyType(
    {TensorType.INT4: Clamp(-8, 7), TensorType.UINT4: Clamp(0, 15), TensorType.INT2: Clamp(-2, 1)}
)


def code_limits(type_: TensorType) -> Clamp:
    """Return the least and the greatest code of an integer type."""
    return NARROW.get(type_) or type_range(CARRIER[type_])


def require_same_type(node: Node, first: Operand, *others: Operand) -> None:
    """Refuse the node unless all operands have the type of `first`."""
    for operand in others:
        node.check(
            operand.type == first.type, "element type", operand, expected=first.type.label, got=operand.type.label
        )


def require_same_quantization(node: Node, first: Operand, *others: Operand) -> None:
    """Refuse the node unless all operands have the per-tensor scale and zero point of `first`."""
    for operand in others:
        node.check(operand.scale == first.scale, "scale", operand, expected=first.scale, got=operand.scale)
        node.check(
            operand.zero_point == first.zero_point,
            "zero point",
            operand,
            expected=first.zero_point,
            got=operand.zero_point,
        )


def require_zero_point_zero(node: Node, *operands: Operand | None) -> None:
    """Refuse the node unless all operands that are there have zero point 0; several zero points are not looked at.

    Source: the Prepare functions look at params.zero_point, as 16-bit activations need it.
    """
    for operand in operands:
        if operand is None:
            continue
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)


def require_rank(node: Node, operand: Operand, low: int, high: int | None = None) -> None:
    """Refuse the node unless the operand has `low` dimensions, or `low` to `high` of them."""
    rank, top = len(operand.shape), low if high is None else high
    expected = low if high is None else f"{low} to {high}"
    node.check(low <= rank <= top, "number of dimensions", operand, expected=expected, got=rank)


def require_rank_from(node: Node, operand: Operand, low: int) -> None:
    """Refuse the node unless the operand has `low` dimensions or more."""
    rank = len(operand.shape)
    node.check(rank >= low, "number of dimensions", operand, expected=f"at least {low}", got=rank)


def integers(node: Node, position: int) -> tuple[int, ...]:
    """Return all elements of the operand at `position`, whose value must be known."""
    return tuple(int(v) for v in node.constant(position).reshape(-1))


def integer(node: Node, position: int) -> int:
    """Return the one element of the operand at `position`, whose value must be known."""
    values = integers(node, position)
    node.check(len(values) == 1, "number of elements", node.input(position), expected=1, got=len(values))
    return values[0]


def integers_option(node: Node, name: str) -> tuple[int, ...]:
    """Return a vector of the operator's options; empty where the file has none."""
    values = node.options.get(name)
    return () if values is None or isinstance(values, int) else tuple(int(v) for v in values)


def axis_within(node: Node, axis: int, rank: int, operand: Operand | None = None) -> int:
    """Return `axis` counted from the front; a negative one counts from the back. Refuse one outside [-rank, rank)."""
    node.check(-rank <= axis < rank, "axis", operand, expected=f"in [{-rank}, {rank})", got=axis)
    return axis + rank if axis < 0 else axis


def require_size(node: Node, operand: Operand, shape: Shape) -> None:
    """Refuse a shape with a negative dimension."""
    node.check(all(d >= 0 for d in shape), "negative dimension", operand, got=list(shape))
