"""RESIZE_BILINEAR of float32 by XNNPACK on x86-64: float32 positions, then along columns, then along rows.

Operands, options and refusals: tflq/engine/kernels/resize_bilinear/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitResizeBilinearNode; XNNPACK's f32-ibilinear for SSE, and its indirection.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.delegation import delegate, has_recorded_image, has_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.resize_bilinear.reference import OpData, Taps, prepare_with
from tflq.engine.kernels.resize_bilinear.xnnpack import positions
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.microkernels.flushed import add, begin_flushing, end_flushing, multiply
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether the image has no dimension of 0, and the output neither."""
    return has_shape(node.input(0), 4, 4) and has_recorded_image(node) and bool(np.all(node.constant(1) > 0))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute positions and parts of pixels in float32."""
    data = prepare_with(node, taps)
    return Prepared((data.shape,), data, evaluate)


def taps(size: int, out_size: int, align: bool, half: bool) -> Taps:
    """Return positions with weights in float32; only that of the second pixel counts."""
    lower, upper, part = positions(size, out_size, align, half)
    return Taps(lower, upper, np.float32(1) - part, part)


def evaluate(data: OpData, x: Array, size: Array) -> Array:
    """Rounding: differences, products and sums, each to float32."""
    out = np.empty(data.shape, np.float32)
    rows, columns = data.rows, data.columns
    image = np.ascontiguousarray(x)
    _pixels(image, out, rows.lower, rows.upper, rows.upper_weight, columns.lower, columns.upper, columns.upper_weight)
    return out


@compiled
def between(first: Real, second: Real, part: Real) -> Real:
    """Return first + (second - first) * part."""
    return add(first, multiply(add(second, -first), part))


@in_pieces(4, out="ny", x="n", y0="y", y1="y", wy="y")
@compiled
def _pixels(x: Array, out: Array, y0: Array, y1: Array, wy: Array, x0: Array, x1: Array, wx: Array) -> None:
    """Prepare guarantees: there is an entry of `y0`, `y1` and their weights for every row of `out`, of `x0`, `x1` for
    every column; all name rows and columns of `x`, and `out` is not empty.
    """
    before = begin_flushing()
    batches, height, width, depth = out.shape
    for b in range(batches):
        for y in range(height):
            top, bottom = x[b, y0[y]], x[b, y1[y]]
            for w in range(width):
                left, right = x0[w], x1[w]
                for c in range(depth):
                    above = between(top[left, c], top[right, c], wx[w])
                    below = between(bottom[left, c], bottom[right, c], wx[w])
                    out[b, y, w, c] = between(above, below, wy[y])
    end_flushing(before)


KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    delegate(Kernel("RESIZE_BILINEAR", "float32 int32 -> float32", prepare, (1, 4), (1,)), takes),
)
