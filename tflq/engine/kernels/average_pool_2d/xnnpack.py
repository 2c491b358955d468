"""AVERAGE_POOL_2D of float32 by XNNPACK on x86-64. Operands and options: kernels/average_pool_2d/reference.py.

Taps go down the columns of the window, nine at a time: their sum, in a tree, is added to that of the taps before. The
total is multiplied by the reciprocal of the number of taps inside the image. NaN becomes the activation's lower limit.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitAveragePool2DNode, CheckPoolingParams; XNNPACK's
average_pooling2d_nhwc_f32, f32-avgpool 9p minmax, and its indirection.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.delegation import delegate, has_shape
from tflq.engine.kernels.families.fused_products import open_range
from tflq.engine.kernels.families.pooling import OpData, columns_inside, inside, prepare_pool
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.microkernels.flushed import add, begin_flushing, end_flushing, multiply
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

_TAPS = 9  # in a tree


def takes(node: Node) -> bool:
    """Return whether the window has more than one tap and its steps leave no pixel out."""
    height, width = int(node.options["filter_height"]), int(node.options["filter_width"])
    return (
        has_shape(node.input(0), 4, 4)
        and 0 < int(node.options["stride_h"]) <= height
        and 0 < int(node.options["stride_w"]) <= width
        and height * width > 1
        and int(node.options["fused_activation_function"]) <= 3
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    prepared = prepare_pool(node, np.dtype(np.float32), evaluate)
    data: OpData = prepared.data
    node.check(min(data.shape) > 0, "the window does not fit into the image", got=node.input(0).shape)
    return Prepared(prepared.shapes, OpData(data.window, data.shape, open_range(node)), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
    """Rounding: every sum, the reciprocal and the product."""
    out = np.empty(data.shape, np.float32)
    average(np.ascontiguousarray(x), data.window, *data.clamp, out)
    return out


@in_pieces(lambda x, window, low, high, out: 2 * out.size * window.taps, out="ny", x="n", window="y")
@compiled
def average(x: Array, window: Window, low: Real, high: Real, out: Array) -> None:
    """Average floats.

    Prepare guarantees: `window` lies over an image of x's height and width, `out` is (N, out_h, out_w, C).
    """
    before = begin_flushing()
    channels, taps = out.shape[3], window.kernel_h * window.kernel_w
    values = np.empty((_TAPS, channels), np.float32)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, bottom = inside(window, oy)
            for ox in range(window.out_w):
                left, right = columns_inside(window, ox)
                sums = out[n, oy, ox]
                sums[:] = 0
                for first in range(0, taps, _TAPS):
                    values[:] = 0
                    for tap in range(first, min(first + _TAPS, taps)):
                        y = oy * window.stride_h - window.pad_top + tap % window.kernel_h
                        column = ox * window.stride_w - window.pad_left + tap // window.kernel_h
                        if top <= y < bottom and left <= column < right:
                            values[tap - first] = x[n, y, column]
                    for c in range(channels):
                        sums[c] = add(sums[c], _tree(values[:, c]))
                scale = np.float32(1) / np.float32((bottom - top) * (right - left))
                for c in range(channels):
                    total = multiply(sums[c], scale)
                    total = total if total > low else low
                    sums[c] = total if total < high else high
    end_flushing(before)


@compiled
def _tree(v: Array) -> Real:
    """Return the sum of nine values. The caller guarantees: there are nine."""
    rest = add(add(add(v[0], v[1]), v[8]), add(v[6], v[7]))
    return add(add(add(v[2], v[3]), add(v[4], v[5])), rest)


KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    delegate(Kernel("AVERAGE_POOL_2D", "float32 -> float32", prepare, (1, 3)), takes),
)
