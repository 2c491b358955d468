"""ZEROS_LIKE: zeros in the shape of a tensor.

| operand | shape | types                 |
|---------|-------|-----------------------|
| x       | any   | float32, int32, int64 |
| y       | as x  | as x                  |

Source: LiteRT 2.3, zeros_like.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare from the shape only."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    return Prepared((x.shape,), x.shape, eval_zeros_like)


def eval_zeros_like(shape: Shape, x: Array) -> Array:
    """Source: zeros_like.cc Eval."""
    return np.zeros(shape, x.dtype)


KERNELS = (Kernel("ZEROS_LIKE", "float32|int32|int64 -> float32|int32|int64", prepare, (1, 1)),)
