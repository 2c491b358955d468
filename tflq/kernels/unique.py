"""UNIQUE: the different values of a vector in order of appearance, and for every element which one it is.

| operand | shape             | types                                     |
|---------|-------------------|-------------------------------------------|
| x       | (n)               | float32, uint8, int8, int16, int32, int64 |
| y       | (number of values)| as x                                      |
| index   | (n)               | int32, int64                              |

Options: idx_out_type, which must be the index's type. NaN has no place in the source's ordered map.
Source: LiteRT 2.3, unique.cc EvalImpl.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.families.element_types import INDEX
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic

#: Bytes for each value: NumPy's sort with positions, the order of first ones, and at most as many unique values.
_SCRATCH = 60


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare outputs whose number of values only the run determines."""
    x, (values, index) = node.input(0), node.outputs
    require_same_type(node, x, values)
    require_rank(node, x, 1)
    index_type = int(node.options["idx_out_type"])
    node.check(index_type == index.type, "idx_out_type", index, expected=int(index.type), got=index_type)
    scratch = _SCRATCH * math.prod(x.shape)
    return Prepared((None, x.shape), np.dtype(index.type.label), eval_unique, scratch=scratch)


def eval_unique(index_type: np.dtype[np.generic], x: Array) -> tuple[Array, Array]:
    """Source: EvalImpl. Of equal values (0.0 and -0.0) the first one is kept."""
    if np.isnan(x).any():
        raise UndefinedResultError("Unique", "NaN among the values")
    _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return x[first[order]], rank[which].astype(index_type)


_X = "float32|uint8|int8|int16|int32|int64"

KERNELS = (Kernel("UNIQUE", f"{_X} -> {_X} {INDEX}", prepare, (1, 1)),)
