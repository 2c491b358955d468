"""BUCKETIZE: how many boundaries are not above x.

| operand | shape | types                          |
|---------|-------|--------------------------------|
| x       | any   | float32, float64, int32, int64 |
| y       | as x  | int32                          |

Options: boundaries (float32, sorted).
Source: LiteRT 2.3, bucketize.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse boundaries that fall."""
    option = node.options["boundaries"]
    boundaries = np.asarray(() if option is None or isinstance(option, int) else option, np.float32)
    if np.isnan(boundaries).any():
        raise UndefinedResultError(node.op, "a boundary is NaN")
    node.check(bool((boundaries[1:] >= boundaries[:-1]).all()), "boundaries", expected="sorted", got=boundaries)
    return Prepared((node.input(0).shape,), boundaries, evaluate)


def evaluate(boundaries: Array, x: Array) -> Array:
    """Source: Bucketize. Rounding: integers are compared as float32. A NaN is above all boundaries."""
    values = x if x.dtype.kind == "f" else x.astype(np.float32)
    return np.searchsorted(boundaries.astype(values.dtype), values, side="right").astype(np.int32)


KERNELS = (Kernel("BUCKETIZE", "float32|float64|int32|int64 -> int32", prepare, (1, 1)),)
