"""MAX_POOL_2D: the largest of the taps inside the image.

| operand | shape        | types                       | quantization                            |
|---------|--------------|-----------------------------|-----------------------------------------|
| x       | N, H, W, C   | float32, uint8, int8, int16 | per tensor                              |
| y       | N, OH, OW, C | as x                        | meant to be x's: nothing is requantized |

Options: padding, strides, filter_height, filter_width, fused activation.
Source: LiteRT 2.3, reference/pooling.h MaxPool; reference/integer_ops/pooling.h MaxPool.
"""

from __future__ import annotations

import numpy as np

from tflq.ir import CARRIER
from tflq.kernels.families.pooling import OpData, largest, prepare_pool
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without a multiplier."""
    return prepare_pool(node, CARRIER[node.input(0).type], eval_quantized)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), eval_float)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: MaxPool. Nothing is rounded."""
    out = np.empty(data.shape, x.dtype)
    lowest, low, high = map(x.dtype.type, (type_range(x.dtype).low, *data.clamp))
    largest(np.ascontiguousarray(x), data.window, lowest, low, high, out)
    return out


def eval_float(data: OpData, x: Array) -> Array:
    """Source: MaxPool (float). A NaN never wins."""
    out, (low, high) = np.empty(data.shape, np.float32), data.clamp
    largest(np.ascontiguousarray(x), data.window, -np.finfo(np.float32).max, low, high, out)
    return out


_VERSIONS = (1, 3)

KERNELS = (
    Kernel("MAX_POOL_2D", "float32 -> float32", prepare_float, _VERSIONS),
    Kernel("MAX_POOL_2D", "uint8 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("MAX_POOL_2D", "int8 -> int8", prepare_quantized, _VERSIONS),
    Kernel("MAX_POOL_2D", "int16 -> int16", prepare_quantized, _VERSIONS),
)
