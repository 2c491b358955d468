"""Axes: negative ones resolved, and quantization spread along one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand, Shape
from tflq.typing import Array


def resolve_axis(node: Node, axis: int, rank: int, operand: Operand | None = None) -> int:
    """Return `axis` counted from the front; refuse one outside [-rank, rank)."""
    if not -rank <= axis < rank:
        node.refuse("axis", operand, expected=f"from {-rank} to {rank - 1}", got=axis)
    return axis % rank


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
