"""RESIZE_BILINEAR of the optimized resolver. Operands, options and refusals: kernels/resize_bilinear/reference.py.

float32 and uint8: the weights of both dimensions are multiplied first, then the four products are added by row. The
integer code for images enlarged eight times gives the same codes: there every weight and every sum is exact. Floats
enlarged twice in both dimensions, without options, are means of two pixels and of two means. On AArch64 floats are not
claimed.
2.3: uint8 is cut off, as in r1.15. int8 goes in integers, half up and then cut off towards zero; left of and above the
first pixel's centre it goes on along the line to the second one, and wraps.
Source: LiteRT 2.3 optimized/resize_bilinear.h ResizeBilinearGeneric, ResizeBilinear2x2,
ResizeBilinearGenericSmallChannel, ResizeBilinear888Uint8. TensorFlow 2.3
resize_bilinear.cc; optimized_ops.h ResizeBilinear (uint8); reference_ops.h ResizeBilinearInteger (int8). The upper
neighbour and the wrap: by 2.3.4's outputs. TensorFlow r1.15 optimized_ops.h ResizeBilinearGenericSmallChannel.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.resize_bilinear import reference
from tflq.engine.kernels.resize_bilinear.reference import (
    ONE,
    OpData,
    Taps,
    integer_taps,
    prepare_with,
    truncate,
    truncating_divide,
)
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with the reference's positions and weights."""
    prepared = reference.prepare_float(node, arithmetic)
    return Prepared(prepared.shapes, prepared.data, eval_uint8)


def eval_uint8(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearGenericSmallChannel. Rounding: float32 in source order, then cut off after + 1/2."""
    return interpolate(data, x, np.float32(0.5))


def interpolate(data: OpData, x: Array, added: np.float32) -> Array:
    """Return codes of weighted sums plus `added`, truncated; weights, products and sums are float32."""
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


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with the reference's positions and weights, or to enlarge twice."""
    prepared = reference.prepare_float(node, arithmetic)
    options = any(bool(node.options[name]) for name in ("align_corners", "half_pixel_centers"))
    (_, height, width, _), (_, new_height, new_width, _) = node.input(0).shape, prepared.data.shape
    is_twice = not options and (new_height, new_width) == (2 * height, 2 * width)
    return Prepared(prepared.shapes, prepared.data, eval_twice if is_twice else eval_floats)


def eval_floats(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearGeneric. Rounding: weights, products and sums, float32 in source order."""
    return interpolate(data, x, np.float32(0))


def eval_twice(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearKernel2x2. Rounding: every sum; halves are exact, except for subnormal numbers."""
    half, out = np.float32(0.5), np.empty(data.shape, np.float32)
    lower = np.concatenate([x[:, 1:], x[:, -1:]], axis=1)
    means = (x + lower) * half
    right, right_means = (np.concatenate([v[:, :, 1:], v[:, :, -1:]], axis=2) for v in (x, means))
    out[:, ::2, ::2], out[:, ::2, 1::2] = x, (x + right) * half
    out[:, 1::2, ::2], out[:, 1::2, 1::2] = means, (means + right_means) * half
    return out


def prepare_truncated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare sums that are cut off towards zero, not rounded."""
    data = truncate(node)
    return Prepared((data.shape,), data, eval_truncated)


def eval_truncated(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearGenericSmallChannel. Rounding: weights, products and sums to float32, then cut off."""
    return interpolate(data, x, np.float32(0))


#: Bytes that an output element takes besides itself: its four neighbours, their sums.
_ELEMENT_BYTES = 40


def taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """Take the next position as the upper neighbour, if there is one."""
    made = integer_taps(size, new_size, align, half)
    return replace(made, upper=np.minimum(made.lower + 1, size - 1))


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute positions and weights in 1/1024 pixels."""
    data = prepare_with(node, taps)
    return Prepared((data.shape,), data, eval_int8, scratch=_ELEMENT_BYTES * prod(data.shape))


def eval_int8(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearInteger. Rounding: half a step added, then towards zero. Overflow: wraps 8 bits."""
    rows, columns = data.rows, data.columns
    lines = x[:, rows.lower] * rows.lower_weight[:, None, None] + x[:, rows.upper] * rows.upper_weight[:, None, None]
    total = lines[:, :, columns.lower] * columns.lower_weight[:, None]
    total += lines[:, :, columns.upper] * columns.upper_weight[:, None]
    return truncating_divide(total + ONE * ONE // 2, ONE * ONE).astype(np.int8)


KERNELS = (
    *valid(
        opt(),
        Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare_uint8, (1, 4), shape_operands=(1,)),
        *unclaimed_floats(reference.KERNELS),
    ),
    *valid(
        opt("litert-1.0", cpu="x86-64"),
        Kernel("RESIZE_BILINEAR", "float32 int32 -> float32", prepare_float, (1, 4), shape_operands=(1,)),
    ),
    *valid(
        opt(until="tf-2.3"),
        Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare_truncated, (1, 3), shape_operands=(1,)),
        Kernel("RESIZE_BILINEAR", "int8 int32 -> int8", prepare_int8, (1, 3), shape_operands=(1,)),
    ),
)
