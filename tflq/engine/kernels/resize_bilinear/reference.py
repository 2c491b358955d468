"""RESIZE_BILINEAR: every output pixel is a weighted mean of four input pixels.

| operand | shape              | types                        | quantization |
|---------|--------------------|------------------------------|--------------|
| x       | (N, H, W, C)       | float32, uint8, int8, int16  | passed by    |
| size    | (2): height, width | int32                        |              |
| y       | (N, height, width, | as x                         | passed by    |
|         | C)                 |                              |              |

Options: align_corners or half_pixel_centers, not both. uint8 interpolates in float32, int8 and int16 in integers with
positions in 1/1024 pixels, so that large enlargements drift: where they leave the input the result is undefined.
Source: LiteRT 2.3, resize_bilinear.cc; reference/resize_bilinear.h ResizeBilinear, ResizeBilinearInteger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.resizing import ratio, resized_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import divide_by_pot_half_away
from tflq.errors import UndefinedResultError
from tflq.typing import Array

ONE = 1 << 10  # a pixel, in the steps of the integer form


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Along one dimension, for every output position: two input positions and the weight of each."""

    lower: Array
    upper: Array
    lower_weight: Array  # 1, or 1/1024 in the integer form
    upper_weight: Array  # the same; together they make 1

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Positions and weights in the order of the fields, as compiled loops take them."""
        return self.lower, self.upper, self.lower_weight, self.upper_weight


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Taps of both dimensions. `offset` is what float sums get before they are cut off: 1/2 for uint8."""

    shape: Shape  # of the output
    rows: Taps
    columns: Taps
    offset: np.float32


def prepare_with(node: Node, taps_of: Callable[[int, int, bool, bool], Taps]) -> OpData:
    """Return the taps of both dimensions; refuse those that read outside the input."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    align, half = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
    node.check(not (align and half), "align_corners and half_pixel_centers", expected="not both", got="both")
    shape = resized_shape(node, smallest=1)
    rows, columns = (taps_of(x.shape[d], shape[d], align, half) for d in (1, 2))
    if prod(shape) and (rows.lower.max() >= x.shape[1] or columns.lower.max() >= x.shape[2]):
        raise UndefinedResultError("ResizeBilinear", f"{list(x.shape)} to {list(shape)} reads outside the input")
    return OpData(shape, rows, columns, np.float32(0.5 if x.type.label == "uint8" else 0))


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute positions and weights in float32."""
    data = prepare_with(node, float_taps)
    return Prepared((data.shape,), data, eval_float)


def truncate(node: Node) -> OpData:
    """Return taps in float32 for sums that are truncated, with nothing added."""
    return replace(prepare_with(node, float_taps), offset=np.float32(0))


def prepare_integer(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute positions and weights in 1/1024 pixels."""
    data = prepare_with(node, integer_taps)
    return Prepared((data.shape,), data, eval_integer)


def float_taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """Source: ComputeInterpolationValues. Left of the first pixel, it is taken twice, with weights that make 1."""
    steps, one_half = np.arange(new_size, dtype=np.float32), np.float32(0.5)
    scale = ratio(size, new_size, align)
    position = (steps + one_half) * scale - one_half if half else steps * scale
    lower = np.maximum(np.floor(position).astype(np.int64), 0)
    upper = np.minimum(np.ceil(position).astype(np.int64), size - 1)
    part = position - lower.astype(np.float32)
    return Taps(lower, upper, np.float32(1) - part, part)


def integer_taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """Source: ComputeInterpolationValuesInteger. The ratio is rounded half up; divisions of positions truncate."""
    inner, outer = (size - 1, new_size - 1) if align and new_size > 1 else (size, new_size)
    scale = (ONE * inner + outer // 2) // outer
    position = np.arange(new_size, dtype=np.int64) * scale
    if half:
        position += scale // 2 - ONE // 2
    lower = np.maximum(truncating_divide(position, ONE), 0)
    upper = np.minimum(truncating_divide(position + ONE - 1, ONE), size - 1)
    part = position - ONE * lower
    return Taps(lower, upper, ONE - part, part)


def truncating_divide(x: Array, divisor: int) -> Array:
    """Return the integer quotient towards zero, as C divides."""
    quotient: Array = np.sign(x) * (np.abs(x) // divisor)
    return quotient


def eval_float(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinear. Rounding: float32 products and sums in source order; uint8 then cuts off after + 1/2."""
    out = np.empty(data.shape, x.dtype)
    if not out.size:
        return out
    _float_pixels(np.ascontiguousarray(x), out, *data.rows.arrays, *data.columns.arrays, data.offset)
    return out


def eval_integer(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearInteger. Rounding: half away from zero, once. Overflow: none (int64)."""
    out = np.empty(data.shape, x.dtype)
    if not out.size:
        return out
    _integer_pixels(np.ascontiguousarray(x), out, *data.rows.arrays, *data.columns.arrays)
    return out


@in_pieces(4, out="ny", x="n", y0="y", y1="y", wy0="y", wy1="y")
@compiled
def _float_pixels(
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
    offset: Real,
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
                for c in range(depth):
                    total = np.float32(top[left, c]) * wy0[y] * wx0[w]
                    total += np.float32(bottom[left, c]) * wy1[y] * wx0[w]
                    total += np.float32(top[right, c]) * wy0[y] * wx1[w]
                    total += np.float32(bottom[right, c]) * wy1[y] * wx1[w]
                    out[b, y, w, c] = total + offset


@in_pieces(4, out="ny", x="n", y0="y", y1="y", wy0="y", wy1="y")
@compiled
def _integer_pixels(
    x: Array, out: Array, y0: Array, y1: Array, wy0: Array, wy1: Array, x0: Array, x1: Array, wx0: Array, wx1: Array
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
                for c in range(depth):
                    total = np.int64(top[left, c]) * wy0[y] * wx0[w]
                    total += np.int64(bottom[left, c]) * wy1[y] * wx0[w]
                    total += np.int64(top[right, c]) * wy0[y] * wx1[w]
                    total += np.int64(bottom[right, c]) * wy1[y] * wx1[w]
                    out[b, y, w, c] = divide_by_pot_half_away(total, 20)


KERNELS = (
    Kernel("RESIZE_BILINEAR", "float32 int32 -> float32", prepare_float, (1, 4), shape_operands=(1,)),
    Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare_float, (1, 4), shape_operands=(1,)),
    Kernel("RESIZE_BILINEAR", "int8 int32 -> int8", prepare_integer, (1, 4), shape_operands=(1,)),
    Kernel("RESIZE_BILINEAR", "int16 int32 -> int16", prepare_integer, (1, 4), shape_operands=(1,)),
)
