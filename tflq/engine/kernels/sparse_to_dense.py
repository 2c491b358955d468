"""SPARSE_TO_DENSE: values at given positions, one default everywhere else.

| operand | shape                   | types                              | quantization |
|---------|-------------------------|------------------------------------|--------------|
| indices | scalar, (n) or (n, rank)| int32, int64                       |              |
| shape   | (rank), up to 4         | int32, int64                       |              |
| values  | scalar or (n)           | float32, uint8, int8, int32, int64 | passed by    |
| default | one element             | as values                          | passed by    |
| y       | shape                   | as values                          | passed by    |

Of several values for one position the last one counts. A position outside the shape fails the run. Up to 2.14, one
value for several positions is refused.
Source: LiteRT 2.3 and TensorFlow 2.14, sparse_to_dense.cc CheckDimensionsMatch; reference_ops.h SparseToDense.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.families.indices import coordinates
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.operands import integers, require_rank, require_same_type, require_size
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

MAX_RANK = 4


@dataclass(frozen=True, slots=True)
class OpData:
    """The output's shape; indices as (n, rank)."""

    shape: Shape
    table: tuple[int, int]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one index for every dimension of the output and one value for every index."""
    indices, operand, values, default = (node.input(position) for position in range(4))
    require_same_type(node, values, default, node.outputs[0])
    require_rank(node, indices, 0, 2)
    require_rank(node, operand, 1)
    require_rank(node, values, 0, 1)
    node.check(prod(default.shape) == 1, "number of elements", default, expected=1, got=list(default.shape))
    shape = integers(node, 1)
    require_size(node, operand, shape)
    node.check(len(shape) <= MAX_RANK, "number of dimensions", operand, expected=f"up to {MAX_RANK}", got=len(shape))
    count, rank = indices.shape if len(indices.shape) == 2 else (prod(indices.shape), 1)
    node.check(rank == len(shape), "coordinates", indices, expected=len(shape), got=rank)
    fits = values.shape in ((), (count,))
    node.check(fits, "number of values", values, expected=f"1 or {count}", got=list(values.shape))
    return Prepared((shape,), OpData(shape, (count, rank)), eval_sparse_to_dense)


def eval_sparse_to_dense(data: OpData, indices: Array, shape: Array, values: Array, default: Array) -> Array:
    """Source: reference_ops::SparseToDense."""
    out = np.full(data.shape, default.reshape(()), values.dtype)
    out[coordinates("sparse_to_dense", indices.reshape(data.table), data.shape)] = values
    return out


_X = "float32|uint8|int8|int32|int64"
ROWS = (Kernel("SPARSE_TO_DENSE", f"{INDEX} {INDEX} {_X} {_X} -> {_X}", prepare, (1, 3), shape_operands=(1,)),)


def prepare_one_each(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse one value for several positions."""
    indices, values = node.input(0), node.input(2)
    count = prod(indices.shape[:1])
    node.check(bool(values.shape) or count == 1, "number of values", values, expected=count, got="a scalar")
    return prepare(node, arithmetic)


KERNELS = (*ROWS, *valid(tflite(until="tflite-2.14"), *(replace(row, prepare=prepare_one_each) for row in ROWS)))
