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

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output whose number of rows only the run determines."""
    x = node.input(0)
    node.check(len(x.shape) > 0, "number of dimensions", x, expected="at least 1", got=0)
    return Prepared((None,), None, eval_where, scratch=coordinates_size)


def coordinates_size(_: None, condition: Array) -> int:
    """Return the bytes of the coordinates, of the places they come from, and of the mask."""
    return 8 * int(np.count_nonzero(condition)) * (condition.ndim + 1) + condition.size


def eval_where(_: None, condition: Array) -> Array:
    """Source: SelectTrueCoords."""
    mask = condition if condition.dtype == np.bool_ else condition != 0  # NumPy looks at booleans faster than numbers
    places = np.flatnonzero(mask)
    out = np.empty((len(places), condition.ndim), np.int64)
    _coordinates(places, np.array(condition.shape, np.int64), out)
    return out


@in_pieces(4, places="r", out="r")
@compiled
def _coordinates(places: Array, shape: Array, out: Array) -> None:
    """Fill `out` (R, D) with the coordinates of `places` (R), in order, of an array of that shape (D).

    The last dimension that is not 1 is walked along, so that the dimensions before it are divided only where a pass
    over it ends.

    Eval guarantees: these shapes, and that an array with places has no dimension of 0.
    """
    axis = len(shape) - 1
    while axis > 0 and shape[axis] == 1:
        axis -= 1
    size, begin = shape[axis], np.int64(0)
    end = begin  # of the pass that `begin` begins
    around = np.zeros(len(shape), np.int64)
    for r in range(places.size):
        place = places[r]
        if place >= end:
            rest = place // size
            begin = rest * size
            end = begin + size
            for d in range(axis - 1, -1, -1):
                above = rest // shape[d]
                around[d] = rest - above * shape[d]
                rest = above
        for d in range(len(shape)):
            out[r, d] = around[d]
        out[r, axis] = place - begin


KERNELS = (Kernel("WHERE", "bool|float32|int64|int32|int8|uint8|uint32 -> int64", prepare, (1, 2)),)
