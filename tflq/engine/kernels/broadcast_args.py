"""BROADCAST_ARGS: the shape that two shapes broadcast to.

| operand | shape            | types        |
|---------|------------------|--------------|
| a       | (m)              | int32, int64 |
| b       | (n)              | as a         |
| y       | (max of m and n) | as a         |

Shapes that do not fit abort the source. int64 sizes wrap to 32 bits in passing.
Source: LiteRT 2.3, reference/broadcast_args.h BroadcastArgs.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output as long as the longer shape."""
    a, b = node.input(0), node.input(1)
    require_same_type(node, a, b, node.outputs[0])
    require_rank(node, a, 1)
    require_rank(node, b, 1)
    length = max(a.shape[0], b.shape[0])
    return Prepared(((length,),), length, eval_broadcast_args)


def eval_broadcast_args(length: int, a: Array, b: Array) -> Array:
    """Broadcast shapes. Missing leading sizes are 1; a size of 1 gives way to the other."""
    left, right = (pad(x, length) for x in (a, b))
    if np.any((left != right) & (left != 1) & (right != 1)):
        raise UndefinedResultError("BroadcastArgs", f"{a.tolist()} and {b.tolist()} do not broadcast")
    return np.where(left == 1, right, left).astype(a.dtype)


def pad(sizes: Array, length: int) -> Array:
    """Return sizes as int32, wrapped, behind leading ones."""
    full = np.ones(length, np.int32)
    full[length - len(sizes) :] = sizes.astype(np.int32)
    return full


KERNELS = (Kernel("BROADCAST_ARGS", f"{INDEX} {INDEX} -> {INDEX}", prepare, (1, 1)),)
