"""GATHER_ND: slices by coordinates.

| operand | shape                                  | types                                          | quantization |
|---------|----------------------------------------|------------------------------------------------|--------------|
| x       | at least one dimension                 | float32, float16, bfloat16, uint8, int8,       | passed by    |
|         |                                        | int16, int32, int64, bool, string              |              |
| indices | (..., n), n up to the rank of x        | int16, int32, int64                            |              |
| y       | indices[:-1] + x[n:]                   | as x                                           | passed by    |

A coordinate outside its dimension fails the run.
Source: LiteRT 2.3, gather_nd.cc Prepare; reference_ops.h GatherNd.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.indices import coordinates
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the output's shape, which depends on the number of coordinates of an index."""
    x, indices = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    for operand in (x, indices):
        node.check(len(operand.shape) >= 1, "number of dimensions", operand, expected="at least 1", got=0)
    depth = indices.shape[-1]
    node.check(depth <= len(x.shape), "coordinates", indices, expected=f"up to {len(x.shape)}", got=depth)
    node.check(0 not in x.shape or 0 in indices.shape, "picks from a tensor without elements", x)
    shape = indices.shape[:-1] + x.shape[depth:]
    return Prepared((shape,), shape, eval_gather_nd)


def eval_gather_nd(shape: Shape, x: Array, indices: Array) -> Array:
    """Source: reference_ops::GatherNd."""
    if indices.shape[-1] == 0:
        return np.broadcast_to(x, shape).copy()
    return x[coordinates("gather_nd", indices, x.shape)]


_X = "float32|float16|bfloat16|uint8|int8|int16|int32|int64|bool|string"

KERNELS = (Kernel("GATHER_ND", f"{_X} int16|int32|int64 -> {_X}", prepare, (1, 6)),)
