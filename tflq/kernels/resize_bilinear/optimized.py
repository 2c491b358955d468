"""RESIZE_BILINEAR of uint8: the weights of both dimensions are multiplied first, then the four products added by row.

Operands, options and refusals: tflq/kernels/resize_bilinear/reference.py. The integer code for images made eight times
as large gives the same codes: there every weight and every sum is exact.
Source: LiteRT 2.3 optimized/resize_bilinear.h ResizeBilinearGenericSmallChannel, ResizeBilinear888Uint8.
"""

from __future__ import annotations

import numpy as np

from tflq.jit.compiled import Real, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.resize_bilinear import reference
from tflq.kernels.resize_bilinear import reference as resize_bilinear
from tflq.kernels.resize_bilinear.reference import OpData
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Positions and weights are the reference's."""
    prepared = resize_bilinear.prepare_float(node, arithmetic)
    return Prepared(prepared.shapes, prepared.data, eval_uint8)


def eval_uint8(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearGenericSmallChannel. Rounding: float32 in source order, then cut off after + 1/2."""
    return interpolate(data, x, np.float32(0.5))


def interpolate(data: OpData, x: Array, added: np.float32) -> Array:
    """Codes of weighted sums plus `added`, cut off; weights, products and sums to float32."""
    out = np.empty(data.shape, x.dtype)
    if not out.size:
        return out
    _pixels(np.ascontiguousarray(x), out, *data.rows.arrays, *data.columns.arrays, added)
    return out


@in_pieces(4, out="ny", x="n", y0="y", y1="y", wy0="y", wy1="y")
@compiled
def _pixels(
    x: Array,
    out: Array,
    y0: Array,
    y1: Array,
    wy0: Array,
    wy1: Array,
    x0: Array,
    x1: Array,
    wx0: Array,
    wx1: Array,
    added: Real,
) -> None:
    """Prepare guarantees: there is an entry of `y0`, `y1` and their weights for every row of `out`, of `x0`, `x1` for
    every column; all name rows and columns of `x`. Eval guarantees: `out` is not empty.
    """
    batches, height, width, depth = out.shape
    for b in range(batches):
        for y in range(height):
            top, bottom = x[b, y0[y]], x[b, y1[y]]
            for w in range(width):
                left, right = x0[w], x1[w]
                top_left, top_right = wy0[y] * wx0[w], wy0[y] * wx1[w]
                bottom_left, bottom_right = wy1[y] * wx0[w], wy1[y] * wx1[w]
                for c in range(depth):
                    total = np.float32(top[left, c]) * top_left
                    total += np.float32(top[right, c]) * top_right
                    total += np.float32(bottom[left, c]) * bottom_left
                    total += np.float32(bottom[right, c]) * bottom_right
                    out[b, y, w, c] = total + added


KERNELS = (
    *valid(opt(), Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare_uint8, (1, 4), shape_operands=(1,))),
    *valid(opt(), *unclaimed_floats(reference.KERNELS)),
)
