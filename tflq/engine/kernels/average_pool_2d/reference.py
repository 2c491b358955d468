"""AVERAGE_POOL_2D: the mean of the taps inside the image. XNNPACK takes floats: xnnpack.py.

| operand | shape        | types                       | quantization                                |
|---------|--------------|-----------------------------|---------------------------------------------|
| x       | N, H, W, C   | float32, uint8, int8, int16 | per tensor                                  |
| y       | N, OH, OW, C | as x                        | meant to be x's: nothing is requantized     |

Options: padding, strides, filter_height, filter_width, fused activation.
Source: LiteRT 2.3, reference/pooling.h AveragePool; reference/integer_ops/pooling.h AveragePool.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.pooling import OpData, average_codes, average_floats, prepare_pool
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.typing import Array

_LARGEST_IMAGE = 2**15  # taps whose 16-bit sum stays inside the source's int32


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without a multiplier."""
    dtype = CARRIER[node.input(0).type]
    prepared = prepare_pool(node, dtype, eval_quantized)
    window = prepared.data.window
    taps = min(window.kernel_h, window.height) * min(window.kernel_w, window.width)
    if taps * 2 ** (8 * dtype.itemsize) > _LARGEST_IMAGE * 2**16:
        raise UndefinedResultError(node.op, f"sums of {taps} taps overflow int32")
    return prepared


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), eval_float)


@filling(lambda data, x: (data.shape, x.dtype))
def eval_quantized(data: OpData, out: Array, x: Array) -> Call:
    """Source: AveragePool. Rounding: half away from zero. Padding: taps outside are not counted."""
    return average_codes.bound(np.ascontiguousarray(x), data.window, *data.clamp, out)


@filling(lambda data, x: (data.shape, np.float32))
def eval_float(data: OpData, out: Array, x: Array) -> Call:
    """Source: AveragePool (float). Rounding: sums over ky, kx in order, one division."""
    return average_floats.bound(np.ascontiguousarray(x), data.window, *data.clamp, out)


_VERSIONS = (1, 3)

KERNELS = (
    Kernel("AVERAGE_POOL_2D", "float32 -> float32", prepare_float, _VERSIONS),
    Kernel("AVERAGE_POOL_2D", "uint8 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("AVERAGE_POOL_2D", "int8 -> int8", prepare_quantized, _VERSIONS),
    Kernel("AVERAGE_POOL_2D", "int16 -> int16", prepare_quantized, _VERSIONS),
)
