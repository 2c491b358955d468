"""RESIZE_BILINEAR of 8-bit codes by XNNPACK: float32 positions, weights in 1/2048, one rounding.

Operands, options and refusals: tflq/engine/kernels/resize_bilinear/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitResizeBilinearNode; XNNPACK's s8 and u8 ibilinear, and their indirection.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.delegation import delegate, has_recorded_image, has_shape, is_quantized
from tflq.engine.kernels.families.resizing import ratio
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.resize_bilinear.reference import OpData, Taps, prepare_with
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

#: Bits of a weight.
_BITS = 11


def takes(node: Node) -> bool:
    """Return whether the image has no dimension of 0."""
    x, y = node.input(0), node.outputs[0]
    return is_quantized(x) and is_quantized(y) and has_shape(x, 4, 4) and has_recorded_image(node)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute positions and parts of pixels in float32."""
    data = prepare_with(node, taps)
    return Prepared((data.shape,), data, evaluate)


def taps(size: int, out_size: int, align: bool, half: bool) -> Taps:
    """Return positions with weights in 1/2048."""
    lower, upper, part = positions(size, out_size, align, half)
    upper_weight = np.rint(part * np.float32(1 << _BITS)).astype(np.int64)
    return Taps(lower, upper, (1 << _BITS) - upper_weight, upper_weight)


def positions(size: int, out_size: int, align: bool, half: bool) -> tuple[Array, Array, Array]:
    """Return two pixels for each position, and the part that the second one has in float32.

    Positions between pixels are clipped to the image; at the edge, the next pixel is the last one.
    """
    scale, one_half = ratio(size, out_size, align), np.float32(0.5)
    position = np.arange(out_size, dtype=np.float32) * scale
    if half:
        position = position + (one_half * scale - one_half)
    position = np.clip(position, np.float32(0), np.float32(size - 1))
    lower = position.astype(np.int64)
    return lower, np.minimum(lower + 1, size - 1), position - lower.astype(np.float32)


def evaluate(data: OpData, x: Array, size: Array) -> Array:
    """Rounding: half up, once. Overflow: none."""
    out = np.empty(data.shape, x.dtype)
    if not out.size:
        return out
    rows, columns = data.rows, data.columns
    _pixels(
        np.ascontiguousarray(x),
        out,
        rows.lower,
        rows.upper,
        rows.upper_weight,
        columns.lower,
        columns.upper,
        columns.upper_weight,
    )
    return out


@compiled
def between(first: Int, second: Int, weight: Int) -> Int:
    """Return first + (second - first) * weight, in 1/2048; so is the weight."""
    return (np.int64(first) << _BITS) + (np.int64(second) - np.int64(first)) * weight


@in_pieces(4, out="ny", x="n", y0="y", y1="y", wy="y")
@compiled
def _pixels(x: Array, out: Array, y0: Array, y1: Array, wy: Array, x0: Array, x1: Array, wx: Array) -> None:
    """Prepare guarantees: there is an entry of `y0`, `y1` and their weights for every row of `out`, of `x0`, `x1` for
    every column; all name rows and columns of `x`. Eval guarantees: `out` is not empty.
    """
    batches, height, width, depth = out.shape
    half = np.int64(1) << np.int64(2 * _BITS - 1)
    for b in range(batches):
        for y in range(height):
            top, bottom = x[b, y0[y]], x[b, y1[y]]
            for w in range(width):
                left, right = x0[w], x1[w]
                for c in range(depth):
                    above = between(top[left, c], top[right, c], wx[w])
                    below = between(bottom[left, c], bottom[right, c], wx[w])
                    out[b, y, w, c] = ((above << _BITS) + (below - above) * wy[y] + half) >> (2 * _BITS)


KERNELS = valid(
    xnnpack(),
    *(
        delegate(Kernel("RESIZE_BILINEAR", f"{t} int32 -> {t}", prepare, (1, 4), (1,)), takes)
        for t in ("uint8", "int8")
    ),
)
