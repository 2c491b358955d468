"""SCATTER_ND: add slices into zeros, by coordinates.

| operand | shape                             | types                                    | quantization |
|---------|-----------------------------------|------------------------------------------|--------------|
| indices | (..., n)                          | int32                                    |              |
| updates | indices[:-1] + shape[n:]          | float32, uint8, int8, int32, int64, bool | passed by    |
| shape   | (rank of y)                       | int32                                    |              |
| y       | shape                             | as updates                               | passed by    |

A coordinate outside its dimension fails the run.
Source: LiteRT 2.3, scatter_nd.cc CheckShapes; reference_ops.h ScatterNd.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.jit.compiled import compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.families.indices import coordinates
from tflq.kernels.filling import Call, filling
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.kernels.operands import integers, require_rank, require_same_type, require_size
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Indices, updates and shape must fit together."""
    indices, updates, operand = (node.input(position) for position in range(3))
    require_same_type(node, updates, node.outputs[0])
    require_rank(node, operand, 1)
    for tensor in (indices, updates):
        node.check(len(tensor.shape) >= 1, "number of dimensions", tensor, expected="at least 1", got=0)
    shape, depth = integers(node, 2), indices.shape[-1]
    require_size(node, operand, shape)
    node.check(depth <= len(shape), "coordinates", indices, expected=f"up to {len(shape)}", got=depth)
    expected = indices.shape[:-1] + shape[depth:]
    node.check(updates.shape == expected, "shape", updates, expected=list(expected), got=list(updates.shape))
    return Prepared((shape,), shape, eval_scatter_nd)


@filling(lambda shape, _, updates, __: (shape, updates.dtype))
def eval_scatter_nd(shape: Shape, out: Array, indices: Array, updates: Array, _: Array) -> Call:
    """Source: reference_ops::ScatterNd. Rounding: float32 sums in order of the indices. Overflow: integers wrap."""
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    leading, behind = shape[:depth], prod(shape[depth:])
    rows, updated = (np.asarray(x, order="C").reshape(count, -1 if x.size else 0) for x in (indices, updates))
    slices, places, is_outside = out.reshape(prod(leading), behind), np.empty(count, np.intp), np.zeros(1, np.bool_)
    locate = _locate.bound(rows, np.array(leading, np.intp), places, is_outside)
    add = _add_slices.bound(updated, places, slices)

    def call() -> None:
        locate()
        if is_outside[0]:
            is_outside[0] = False
            coordinates("scatter_nd", indices, shape)  # says which
        slices.fill(0)
        add()

    return call


@in_pieces(indices="r", places="r")
@compiled
def _locate(indices: Array, sizes: Array, places: Array, is_outside: Array) -> None:
    """Which slice each row of coordinates means, and whether any of these is outside.

    Eval guarantees: `sizes` has an entry for each column of `indices`, `places` one for each row.
    """
    for r in range(indices.shape[0]):
        place = 0
        for c in range(indices.shape[1]):
            index = np.int64(indices[r, c])
            if index < 0 or index >= sizes[c]:
                is_outside[0] = True
            place = place * sizes[c] + index
        places[r] = place


@in_pieces(updates="r", places="r")
@compiled
def _add_slices(updates: Array, places: Array, slices: Array) -> None:
    """Eval guarantees: `places` has an entry for each row of `updates`, and `slices` that row; both are as wide."""
    for r in range(updates.shape[0]):
        for i in range(updates.shape[1]):
            slices[places[r], i] += updates[r, i]


_X = "float32|uint8|int8|int32|int64|bool"

KERNELS = (Kernel("SCATTER_ND", f"int32 {_X} int32 -> {_X}", prepare, (1, 1), shape_operands=(2,)),)
