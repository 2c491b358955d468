"""RESIZE_BILINEAR of r1.15's optimized kernels on uint8: weights are multiplied first, corners go row by row.

Source: TensorFlow r1.15 lite/kernels/internal/optimized/optimized_ops.h ResizeBilinearGenericSmallChannel.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.reference.resize_bilinear import OpData
from tflq.kernels.tf1.resize_bilinear import op_data
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.compiled import compiled


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """As the reference form."""
    data = op_data(node)
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearGenericSmallChannel. Rounding: weights, products and sums to float32, then cut off."""
    out = np.empty(data.shape, x.dtype)
    rows, columns = data.rows, data.columns
    _pixels(
        np.ascontiguousarray(x), out, rows.lower, rows.upper, rows.lower_weight, rows.upper_weight,
        columns.lower, columns.upper, columns.lower_weight, columns.upper_weight,
    )  # fmt: skip
    return out


@compiled
def _pixels(
    x: Array, out: Array, y0: Array, y1: Array, wy0: Array, wy1: Array,
    x0: Array, x1: Array, wx0: Array, wx1: Array,
) -> None:  # fmt: skip
    batches, height, width, depth = out.shape
    for b in range(batches):
        for y in range(height):
            top, bottom = x[b, y0[y]], x[b, y1[y]]
            for w in range(width):
                left, right = x0[w], x1[w]
                w00, w01 = wy0[y] * wx0[w], wy0[y] * wx1[w]
                w10, w11 = wy1[y] * wx0[w], wy1[y] * wx1[w]
                for c in range(depth):
                    total = np.float32(top[left, c]) * w00
                    total += np.float32(top[right, c]) * w01
                    total += np.float32(bottom[left, c]) * w10
                    total += np.float32(bottom[right, c]) * w11
                    out[b, y, w, c] = total


KERNELS = (Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare, (1, 2), shape_operands=(1,)),)
