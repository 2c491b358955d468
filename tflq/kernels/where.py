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

from tflq.jit.compiled import Int, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output whose number of rows only the run determines."""
    x = node.input(0)
    node.check(len(x.shape) > 0, "number of dimensions", x, expected="at least 1", got=0)
    return Prepared((None,), None, eval_where, scratch=coordinates_size)


def coordinates_size(_: None, condition: Array) -> int:
    """Return the bytes of the coordinates, and of the mask."""
    return 8 * int(np.count_nonzero(condition != 0) + 1) * condition.ndim + condition.size


def eval_where(_: None, condition: Array) -> Array:
    """Source: SelectTrueCoords."""
    mask = (condition != 0).reshape(-1)  # NumPy counts booleans faster than numbers
    count = np.count_nonzero(mask)
    out = np.empty((count + 1, condition.ndim), np.int64)
    _coordinates(mask, 0, np.array(condition.shape, np.int64), np.zeros(1, np.int64), out)
    return out[:count]


@in_pieces(mask="i", start="i")
@compiled
def _coordinates(mask: Array, start: Int, shape: Array, count: Array, out: Array) -> None:
    """Write the coordinates of true elements from row `count` on.

    The coordinates of every element are written, but only a true element moves on to the next row: a branch would be
    guessed wrong half of the time. The last dimension that is not 1 is walked along, so that the dimensions before it
    are divided once for each pass.

    Eval guarantees: `out` has a row for each true element of the whole mask and one more, and a column for each of the
    dimensions.
    """
    row, axis = count[0], len(shape) - 1
    while axis > 0 and shape[axis] == 1:
        axis -= 1
    size, i = shape[axis], 0
    around = np.zeros(len(shape), np.int64)
    while i < len(mask):
        rest = (start + i) // size
        begin = start + i - rest * size
        for d in range(axis - 1, -1, -1):
            above = rest // shape[d]
            around[d] = rest - above * shape[d]
            rest = above
        stop = min(size, begin + len(mask) - i)
        for k in range(begin, stop):
            for d in range(len(shape)):
                out[row, d] = around[d]
            out[row, axis] = k
            row += mask[i + k - begin]
        i += stop - begin
    count[0] = row


KERNELS = (Kernel("WHERE", "bool|float32|int64|int32|int8|uint8|uint32 -> int64", prepare, (1, 2)),)
