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

from tflq.kernels.families.indices import coordinates
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


def eval_scatter_nd(shape: Shape, indices: Array, updates: Array, _: Array) -> Array:
    """Source: reference_ops::ScatterNd. Rounding: float32 sums in order of the indices. Overflow: integers wrap."""
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    leading, behind = shape[:depth], prod(shape[depth:])
    slices = np.zeros((prod(leading), behind), updates.dtype)
    places = np.zeros(count, np.intp)
    for coordinate, size in zip(coordinates("scatter_nd", indices, shape), leading, strict=True):
        places = places * size + coordinate.reshape(-1)
    np.add.at(slices, places, updates.reshape(count, behind))
    return slices.reshape(shape)


_X = "float32|uint8|int8|int32|int64|bool"

KERNELS = (Kernel("SCATTER_ND", f"int32 {_X} int32 -> {_X}", prepare, (1, 1), shape_operands=(2,)),)
