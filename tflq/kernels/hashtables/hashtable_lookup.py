"""HASHTABLE_LOOKUP: rows by their keys, which are given in ascending order.

| operand | shape                 | types | quantization |
|---------|-----------------------|-------|--------------|
| lookup  | (N)                   | int32 | none         |
| keys    | (K > 0)               | int32 | none         |
| values  | (K, ...); string: (K) | any   | passed by    |
| y       | (N, ...)              | as values | passed by |
| hits    | (N)                   | uint8 | none         |

Missing keys give zeros, or empty strings, and a hit of 0. Keys are searched as C's bsearch does: the middle first, so
that keys which are out of order or not unique give what it comes upon.
Source: LiteRT 2.3, hashtable_lookup.cc Prepare, Eval; glibc bsearch.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """One row for each key."""
    lookup, keys, values = node.input(0), node.input(1), node.input(2)
    require_rank(node, lookup, 1)
    require_rank(node, keys, 1)
    require_same_type(node, values, node.outputs[0])
    node.check(len(values.shape) >= 1, "number of dimensions", values, expected="at least 1", got=0)
    node.check(keys.shape[0] == values.shape[0], "rows", values, expected=keys.shape[0], got=values.shape[0])
    node.check(keys.shape[0] > 0, "no rows", values)
    if values.type.label == "string":
        require_rank(node, values, 1)
    return Prepared((lookup.shape + values.shape[1:], lookup.shape), None, eval_lookup)


def eval_lookup(data: None, lookup: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """Source: hashtable_lookup.cc Eval."""
    rows = searched(lookup, keys)
    hits = rows >= 0
    y = values[np.where(hits, rows, 0)]
    y[~hits] = b"" if values.dtype == object else 0
    return y, hits.astype(np.uint8)


def searched(lookup: Array, keys: Array) -> Array:
    """For each element of `lookup` the row at which bsearch finds it, or -1. All are searched at once."""
    low, high = np.zeros(lookup.shape, np.int64), np.full(lookup.shape, len(keys), np.int64)
    rows = np.full(lookup.shape, -1, np.int64)
    while (open_ := (low < high) & (rows < 0)).any():
        middle = (low + high) // 2
        key = keys[np.minimum(middle, len(keys) - 1)]
        rows = np.where(open_ & (lookup == key), middle, rows)
        high = np.where(open_ & (lookup < key), middle, high)
        low = np.where(open_ & (lookup > key), middle + 1, low)
    return rows


KERNELS = (Kernel("HASHTABLE_LOOKUP", "int32 int32 any -> any uint8", prepare, (1, 1)),)
