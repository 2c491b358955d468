"""L2_POOL_2D: the root of the mean square of the taps inside the image.

| operand | shape        | types   |
|---------|--------------|---------|
| x       | N, H, W, C   | float32 |
| y       | N, OH, OW, C | float32 |

Options: padding, strides, filter_height, filter_width, fused activation.
Source: LiteRT 2.3, pooling.cc L2Eval; reference/pooling.h L2Pool.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.pooling import OpData, prepare_pool, root_mean_squares
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Source: L2Pool. Rounding: squares and their sum over ky, kx in order, one division, one root."""
    out, (low, high) = np.empty(data.shape, np.float32), data.clamp
    root_mean_squares(np.ascontiguousarray(x), data.window, low, high, out)
    return out


_REFERENCE = (Kernel("L2_POOL_2D", "float32 -> float32", prepare, (1, 1)),)
KERNELS = (*_REFERENCE, *valid(opt(), *unclaimed_floats(_REFERENCE)))
