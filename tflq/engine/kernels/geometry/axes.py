"""Axes and broadcasting.

Axes: negative ones resolved, and quantization spread along one.

Broadcasting of two operands: output shapes, and operands spread to them.

Source: LiteRT 2.3 kernel_util.cc CalculateShapeForBroadcast; reference/broadcast_loop.h BroadcastBinaryOpSimple.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand, Shape
from tflq.typing import Array


def rows_around(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return (elements before, along, behind) an axis: the shape as three dimensions."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Scales and zero points of a tensor, and its shape as (outer, channels, inner)."""

    scale: Array  # float32, length 1 or C
    zero_point: Array  # int64, the same length
    rows: tuple[int, int, int]

    @property
    def count(self) -> int:
        """How many scales there are."""
        return len(self.scale)


def along(node: Node, operand: Operand, shape: Shape) -> Channels:
    """Return the operand's quantization: one entry for all of `shape`, or one for each slice of its axis."""
    q = operand.quantization
    if q is None or len(q.scale) <= 1:
        return Channels(np.array([operand.scale], np.float32), np.array([operand.zero_point]), (1, 1, prod(shape)))
    axis = q.quantized_dimension
    node.check(0 <= axis < len(shape), "quantized dimension", operand, expected=f"below {len(shape)}", got=axis)
    node.check(len(q.scale) == shape[axis], "number of scales", operand, expected=shape[axis], got=len(q.scale))
    same = len(q.zero_point) == len(q.scale)
    node.check(same or len(q.zero_point) > 0, "has scales but no zero points", operand)
    zero_point = q.zero_point if same else np.full(len(q.scale), q.zero_point[0])
    return Channels(np.ascontiguousarray(q.scale, np.float32), zero_point.astype(np.int64), rows_around(shape, axis))


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
