"""RESIZE_BILINEAR of r1.15's optimized kernels on uint8: weights are multiplied first, corners go row by row.

Source: TensorFlow r1.15 lite/kernels/internal/optimized/optimized_ops.h ResizeBilinearGenericSmallChannel.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.resize_bilinear.optimized import interpolate
from tflq.kernels.resize_bilinear.reference import OpData
from tflq.kernels.resize_bilinear.tf1 import op_data
from tflq.kernels.validity import tf1
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    data = op_data(node)
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearGenericSmallChannel. Rounding: weights, products and sums to float32, then cut off."""
    return interpolate(data, x, np.float32(0))


KERNELS = valid(tf1("opt"), Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare, (1, 2), shape_operands=(1,)))
