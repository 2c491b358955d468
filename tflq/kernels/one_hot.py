"""ONE_HOT: one of two values, by whether a position is the index.

| operand | shape                          | types                                    |
|---------|--------------------------------|------------------------------------------|
| indices | any                            | int32, int64                             |
| depth   | one element                    | int32                                    |
| on, off | one element                    | float32, int32, int64, int8, uint8, bool |
| y       | indices' with depth at the     | as on                                    |
|         | axis                           |                                          |

Options: axis (-1: behind all others). Indices outside [0, depth) give `off` everywhere; int64 ones wrap to 32 bits
first.
Source: LiteRT 2.3, one_hot.cc OneHotComputeImpl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.families.element_types import INDEX
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import integer, require_same_type, require_size
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Where the new dimension comes, and its positions, shaped to broadcast against the indices."""

    axis: int
    positions: Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the new dimension's place and size."""
    indices, on, off = node.input(0), node.input(2), node.input(3)
    require_same_type(node, on, off, node.outputs[0])
    for operand in (on, off):
        node.check(np.prod(operand.shape) == 1, "number of elements", operand, expected=1, got=list(operand.shape))
    depth, rank = integer(node, 1), len(indices.shape)
    require_size(node, node.input(1), (depth,))
    axis = int(node.options["axis"])
    axis = rank if axis == -1 else axis
    node.check(0 <= axis <= rank, "axis", expected=f"-1 to {rank}", got=axis)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    node.claim(4 * depth, "positions of the depth")
    positions = np.arange(depth, dtype=np.int32).reshape(-1, *(1,) * (rank - axis))
    return Prepared((shape,), OpData(axis, positions), eval_one_hot)


def eval_one_hot(data: OpData, indices: Array, depth: Array, on: Array, off: Array) -> Array:
    """Source: OneHotComputeImpl."""
    wrapped = np.expand_dims(indices.astype(np.int32), data.axis)
    return np.where(wrapped == data.positions, on.reshape(()), off.reshape(()))


_X = "float32|int32|int64|int8|uint8|bool"

KERNELS = (Kernel("ONE_HOT", f"{INDEX} int32 {_X} {_X} -> {_X}", prepare, (1, 1), shape_operands=(1,)),)
