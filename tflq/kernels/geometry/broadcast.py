"""Broadcasting of two operands: output shapes, and operands spread to them.

Source: LiteRT 2.3 kernel_util.cc CalculateShapeForBroadcast; reference/broadcast_loop.h BroadcastBinaryOpSimple.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Node, Operand, Shape

#: Highest rank that BroadcastBinaryOpSimple takes; operands of equal shape are not limited.
MAX_RANK = 8


def broadcast_shape(node: Node, a: Operand, b: Operand, max_rank: int = MAX_RANK) -> Shape:
    """The shape of both operands together, aligned at the last axis; refuses shapes that do not fit."""
    if a.shape == b.shape:
        return a.shape
    rank = max(len(a.shape), len(b.shape))
    if rank > max_rank:
        node.refuse("rank of a broadcast", b, expected=f"at most {max_rank}", got=rank)
    pairs = zip((1,) * (rank - len(a.shape)) + a.shape, (1,) * (rank - len(b.shape)) + b.shape, strict=True)
    shape = []
    for p, q in pairs:
        if not (p == q or p == 1 or q == 1):
            node.refuse("shapes cannot be broadcast", b, expected=list(a.shape), got=list(b.shape))
        shape.append(0 if 0 in (p, q) else max(p, q))
    return tuple(shape)


def spread(x: Array, shape: Shape) -> Array:
    """`x` repeated to `shape`, C-contiguous; `x` itself where it already is that."""
    if x.shape == shape:
        return np.ascontiguousarray(x) if x.shape else x
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out
