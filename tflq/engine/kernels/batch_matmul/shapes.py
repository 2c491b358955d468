"""Shapes of BATCH_MATMUL, checked. Operands: tflq/engine/kernels/batch_matmul/reference.py."""

from __future__ import annotations

from tflq.engine.kernels.kernel import Node, Operand, Shape


def shapes(node: Node) -> tuple[Shape, tuple[bool, bool], int]:
    """Return the shape of the output, which operands are adjoint, and the inner length, checked."""
    x, y = node.input(0), node.input(1)
    for operand in (x, y):
        rank = len(operand.shape)
        node.check(2 <= rank <= 5, "rank", operand, expected="2 to 5", got=rank)
    adjoint = bool(node.options["adj_x"]), bool(node.options["adj_y"])
    (rows, length), (inner, columns) = _matrix(x.shape, adjoint[0]), _matrix(y.shape, adjoint[1])
    node.check(length == inner, "inner dimension", y, expected=length, got=inner)
    return (*_leading(node, x, y), rows, columns), adjoint, length


def _matrix(shape: Shape, adjoint: bool) -> Shape:
    return (shape[-1], shape[-2]) if adjoint else shape[-2:]


def _leading(node: Node, x: Operand, y: Operand) -> Shape:
    rank = max(len(x.shape), len(y.shape))
    pairs = list(zip((1,) * (rank - len(x.shape)) + x.shape, (1,) * (rank - len(y.shape)) + y.shape, strict=True))[:-2]
    for a, b in pairs:
        node.check(a == b or 1 in (a, b), "leading dimensions do not broadcast", y, expected=x.shape, got=y.shape)
    return tuple(b if a == 1 else a for a, b in pairs)
