"""Broadcasting of two operands: output shapes, and operands spread to them.

Source: LiteRT 2.3 kernel_util.cc CalculateShapeForBroadcast; reference/broadcast_loop.h BroadcastBinaryOpSimple.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand, Shape
from tflq.typing import Array

#: Highest rank that BroadcastBinaryOpSimple takes; operands of equal shape are not limited.
MAX_RANK = 8


def broadcast_shape(node: Node, a: Operand, b: Operand, max_rank: int = MAX_RANK) -> Shape:
    """Return the shape of both operands together, aligned at the last axis; refuse shapes that do not fit."""
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
    """Return `x` repeated to `shape`, C-contiguous; `x` itself if it already is that."""
    if x.shape == shape:
        return np.ascontiguousarray(x) if x.shape else x
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def repeat_blocks(shape: Shape, whole: Shape) -> tuple[int, int, int] | None:
    """Return `whole` as (outer, times, inner), for a tensor of `shape` (outer, inner) that is repeated in between.

    Return None if it is repeated along axes that are apart.
    """
    aligned = (1,) * (len(whole) - len(shape)) + shape
    repeated = [axis for axis, (extent, full) in enumerate(zip(aligned, whole, strict=True)) if extent != full]
    if not repeated:
        return prod(whole), 1, 1
    first, last = repeated[0], repeated[-1] + 1
    if any(extent != 1 for extent in aligned[first:last]):
        return None
    return prod(whole[:first]), prod(whole[first:last]), prod(whole[last:])
