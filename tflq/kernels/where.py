"""WHERE: the coordinates of elements that are not zero, in order.

| operand   | shape                  | types                                          |
|-----------|------------------------|------------------------------------------------|
| condition | at least one dimension | bool, float32, int64, int32, int8, uint8,      |
|           |                        | uint32                                         |
| y         | (count, rank)          | int64                                          |

NaN is not zero.
Source: LiteRT 2.3, where.cc; reference_ops.h SelectTrueCoords.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output whose number of rows only the run determines."""
    x = node.input(0)
    node.check(len(x.shape) > 0, "number of dimensions", x, expected="at least 1", got=0)
    return Prepared((None,), None, eval_where, scratch=coordinates_size)


def coordinates_size(_: None, condition: Array) -> int:
    """Return the bytes of the coordinates, and of as many while they are gathered."""
    return 24 * int(np.count_nonzero(condition)) * condition.ndim + condition.size


def eval_where(_: None, condition: Array) -> Array:
    """Source: SelectTrueCoords."""
    return np.argwhere(condition).astype(np.int64)


KERNELS = (Kernel("WHERE", "bool|float32|int64|int32|int8|uint8|uint32 -> int64", prepare, (1, 2)),)
