"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

RESIZE_BILINEAR: every output pixel is a weighted mean of four input pixels.

| operand | shape              | types                        | quantization |
|---------|--------------------|------------------------------|--------------|
| x       | (N, H, W, C)       | float32, uint8, int8, int16  | passed by    |
| size    | (2): height, width | int32                        |              |
| y       | (N, height, width, | as x                         | passed by    |
|         | C)                 |                              |              |

Options: align_corners or half_pixel_centers, not both; r1.15 has no half-pixel centres yet. A form is where the taps
lie (`*_taps`) and how their pixels are blended. `KERNELS` lists which runtime has which:

- reference: uint8 in float32, int8 and int16 in integers with positions in 1/1024 pixels, so that large enlargements
  drift: where they leave the input the result is undefined. r1.15 cuts uint8 and int8 off instead of rounding them.
- optimized: float32 and uint8 multiply the weights first, then add the four products by row. The integer code for
  images enlarged eight times gives the same codes: there every weight and every sum is exact. Floats enlarged twice in
  both dimensions, without options, are means of two pixels and of two means. On AArch64 floats are not claimed.
  2.3: uint8 is cut off, as in r1.15. int8 goes in integers, half up and then cut off towards zero; left of and above
  the first pixel's centre it goes on along the line to the second one, and wraps.
- XNNPACK: float32 positions; codes have weights in 1/2048 and one rounding, floats go along columns, then along rows.

Source: LiteRT 2.3, resize_bilinear.cc; reference/resize_bilinear.h ResizeBilinear, ResizeBilinearInteger;
optimized/resize_bilinear.h ResizeBilinearGeneric, ResizeBilinear2x2, ResizeBilinearGenericSmallChannel,
ResizeBilinear888Uint8; xnnpack_delegate.cc VisitResizeBilinearNode; XNNPACK's s8, u8 and f32 ibilinear, and their
indirection. TensorFlow 2.3 resize_bilinear.cc; optimized_ops.h ResizeBilinear (uint8); reference_ops.h
ResizeBilinearInteger (int8). The upper neighbour and the wrap: by 2.3.4's outputs. TensorFlow r1.15
lite/kernels/resize_bilinear.cc; reference_ops.h ResizeBilinear; optimized_ops.h ResizeBilinearGenericSmallChannel.

RESIZE_NEAREST_NEIGHBOR: every output pixel is a copy of one input pixel.

| operand | shape              | types                        | quantization |
|---------|--------------------|------------------------------|--------------|
| x       | (N, H, W, C)       | every 8, 16 and 32 bit type  | passed by    |
| size    | (2): height, width | int32                        |              |
| y       | (N, height, width, | as x                         | passed by    |
|         | C)                 |                              |              |

Options: align_corners, half_pixel_centers.
Source: LiteRT 2.3, resize_nearest_neighbor.cc; reference/resize_nearest_neighbor.h GetNearestNeighbor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled
from tflq.engine.jit.flushing import add, begin_flushing, end_flushing, multiply
from tflq.engine.jit.pieces import InPieces, in_pieces
from tflq.engine.kernels.checks import require_same_type
from tflq.engine.kernels.delegation import RECORDED_IMAGE, delegate, is_quantized, meeting, needs, ranked, result
from tflq.engine.kernels.families.movement import BITS_8, BITS_16, BITS_32, ratio, resized_shape
from tflq.engine.kernels.families.positions import eval_nearest
from tflq.engine.kernels.families.unary import unclaimed_floats
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepare, Prepared, Shape, filling, in_turn, valid
from tflq.engine.kernels.validity import micro, opt, tf1, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import divide_by_pot_half_away, wrap
from tflq.errors import UndefinedResultError
from tflq.typing import Array

ONE = 1 << 10  # a pixel, in the steps of the integer form
#: Bits of a weight of XNNPACK's codes.
_BITS = 11


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Along one dimension, for every output position: two input positions and the weight of each."""

    lower: Array
    upper: Array
    lower_weight: Array  # 1, or 1/1024 or 1/2048 in integer forms
    upper_weight: Array  # the same; together they make 1

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Positions and weights in the order of the fields, as compiled loops take them."""
        return self.lower, self.upper, self.lower_weight, self.upper_weight


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Taps of both dimensions. `offset` is what float sums get before they are cut off: 1/2 if they are rounded."""

    shape: Shape  # of the output
    rows: Taps
    columns: Taps
    offset: np.float32
    pixels: InPieces


TapsOf = Callable[[int, int, bool, bool], Taps]


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
    lower = np.maximum(_truncating_divide(position, ONE), 0)
    upper = np.minimum(_truncating_divide(position + ONE - 1, ONE), size - 1)
    part = position - ONE * lower
    return Taps(lower, upper, ONE - part, part)


def _truncating_divide(x: Array, divisor: int) -> Array:
    """Return the integer quotient towards zero, as C divides."""
    quotient: Array = np.sign(x) * (np.abs(x) // divisor)
    return quotient


def extrapolating_taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """Take the next position as the upper neighbour, if there is one."""
    made = integer_taps(size, new_size, align, half)
    return replace(made, upper=np.minimum(made.lower + 1, size - 1))


def clipped_taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """Clip float32 positions to the image; at the edge, the next pixel is the last one."""
    scale, one_half = ratio(size, new_size, align), np.float32(0.5)
    position = np.arange(new_size, dtype=np.float32) * scale
    if half:
        position = position + (one_half * scale - one_half)
    position = np.clip(position, np.float32(0), np.float32(size - 1))
    lower = position.astype(np.int64)
    part = position - lower.astype(np.float32)
    return Taps(lower, np.minimum(lower + 1, size - 1), np.float32(1) - part, part)


def coded_taps(size: int, new_size: int, align: bool, half: bool) -> Taps:
    """Clip likewise, with weights in 1/2048, rounded half to even."""
    taps = clipped_taps(size, new_size, align, half)
    weight = np.rint(taps.upper_weight * np.float32(1 << _BITS)).astype(np.int64)
    return replace(taps, lower_weight=(1 << _BITS) - weight, upper_weight=weight)


# How four pixels become one: `a` and `b` are the left and the right pixel of the upper row, `c` and `d` those of the
# lower, `u`, `v` and `s`, `t` the weights of the rows and of the columns, `added` what float sums get.


@compiled
def by_column(a: Real, b: Real, c: Real, d: Real, u: Real, v: Real, s: Real, t: Real, added: Real) -> Real:
    """Source: ResizeBilinear. Rounding: float32 products and sums in source order."""
    total = np.float32(a) * u * s
    total += np.float32(c) * v * s
    total += np.float32(b) * u * t
    total += np.float32(d) * v * t
    return total + added


@compiled
def by_row(a: Real, b: Real, c: Real, d: Real, u: Real, v: Real, s: Real, t: Real, added: Real) -> Real:
    """Source: ResizeBilinearGenericSmallChannel. Rounding: weights, products and sums, float32 in source order."""
    total = np.float32(a) * (u * s)
    total += np.float32(b) * (u * t)
    total += np.float32(c) * (v * s)
    total += np.float32(d) * (v * t)
    return total + added


@compiled
def _weighted(a: Int, b: Int, c: Int, d: Int, u: Int, v: Int, s: Int, t: Int) -> Int:
    return np.int64(a) * u * s + np.int64(c) * v * s + np.int64(b) * u * t + np.int64(d) * v * t


@compiled
def rounded(a: Int, b: Int, c: Int, d: Int, u: Int, v: Int, s: Int, t: Int, added: Real) -> Int:
    """Source: ResizeBilinearInteger. Rounding: half away from zero, once. Overflow: none (int64)."""
    return divide_by_pot_half_away(_weighted(a, b, c, d, u, v, s, t), 20)


@compiled
def wrapped(a: Int, b: Int, c: Int, d: Int, u: Int, v: Int, s: Int, t: Int, added: Real) -> Int:
    """Source: ResizeBilinearInteger of 2.3. Rounding: half a step added, then towards zero. Overflow: wraps 8 bits."""
    total = _weighted(a, b, c, d, u, v, s, t) + (np.int64(1) << np.int64(19))
    return wrap(-(-total >> np.int64(20)) if total < 0 else total >> np.int64(20), 8)


@compiled
def _between(first: Int, second: Int, weight: Int) -> Int:
    """Return first + (second - first) * weight, in 1/2048; so is the weight."""
    return (np.int64(first) << _BITS) + (np.int64(second) - np.int64(first)) * weight


@compiled
def halved_up(a: Int, b: Int, c: Int, d: Int, u: Int, v: Int, s: Int, t: Int, added: Real) -> Int:
    """Source: XNNPACK's s8 and u8 ibilinear. Rounding: half up, once. Overflow: none."""
    above, below = _between(a, b, t), _between(c, d, t)
    half = np.int64(1) << np.int64(2 * _BITS - 1)
    return ((above << _BITS) + (below - above) * v + half) >> (2 * _BITS)


@compiled
def _part(first: Real, second: Real, part: Real) -> Real:
    """Return first + (second - first) * part."""
    return add(first, multiply(add(second, -first), part))


@compiled
def flushed(a: Real, b: Real, c: Real, d: Real, u: Real, v: Real, s: Real, t: Real, added: Real) -> Real:
    """Source: XNNPACK's f32 ibilinear. Rounding: differences, products and sums, each to float32, flushed to zero."""
    return _part(_part(a, b, t), _part(c, d, t), v)


@compiled
def _nothing() -> Int:
    return 0


@compiled
def _no_end(before: Int) -> None:
    """Leave the processor as it is."""


#: The names that `_blending` replaces: the blend, and what happens before and after.
blend: Any = None
begin: Any = None
end: Any = None


@cache
def _blending(function: Compiled[..., Any]) -> InPieces:
    around = (begin_flushing, end_flushing) if function is flushed else (_nothing, _no_end)
    return _pixels.bind(blend=function, begin=around[0], end=around[1])  # type: ignore[return-value]


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
    before = begin()
    batches, height, width, depth = out.shape
    for i in range(batches):
        for y in range(height):
            top, bottom = x[i, y0[y]], x[i, y1[y]]
            for w in range(width):
                left, right = x0[w], x1[w]
                u, v, s, t = wy0[y], wy1[y], wx0[w], wx1[w]
                for k in range(depth):
                    a, b, c, d = top[left, k], top[right, k], bottom[left, k], bottom[right, k]
                    out[i, y, w, k] = blend(a, b, c, d, u, v, s, t, added)
    end(before)


def interpolating(taps_of: TapsOf, function: Compiled[..., Any], *, rounds: bool = True) -> Prepare:
    """Return a prepare of a form; `rounds`: float sums of uint8 get 1/2 before they are cut off."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x = node.input(0)
        require_same_type(node, x, node.outputs[0])
        align, half = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
        node.check(not (align and half), "align_corners and half_pixel_centers", expected="not both", got="both")
        shape = resized_shape(node, smallest=1)
        rows, columns = (taps_of(x.shape[d], shape[d], align, half) for d in (1, 2))
        if prod(shape) and (rows.lower.max() >= x.shape[1] or columns.lower.max() >= x.shape[2]):
            raise UndefinedResultError("ResizeBilinear", f"{list(x.shape)} to {list(shape)} reads outside the input")
        offset = np.float32(0.5 if rounds and x.type.label == "uint8" else 0)
        return Prepared((shape,), OpData(shape, rows, columns, offset, _blending(function)), evaluate)

    return prepare


@filling(lambda data, x, _: (data.shape, x.dtype))
def evaluate(data: OpData, out: Array, x: Array, size: Array) -> Call:
    """Blend every pixel. Rounding and overflow: those of the blend."""
    if not out.size:
        return in_turn(())
    return data.pixels.bound(np.ascontiguousarray(x), out, *data.rows.arrays, *data.columns.arrays, data.offset)


_by_row = interpolating(float_taps, by_row)


def prepare_optimized_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare by row, or to enlarge twice."""
    prepared = _by_row(node, arithmetic)
    options = any(bool(node.options[name]) for name in ("align_corners", "half_pixel_centers"))
    (_, height, width, _), (_, new_height, new_width, _) = node.input(0).shape, prepared.data.shape
    is_twice = not options and (new_height, new_width) == (2 * height, 2 * width)
    return replace(prepared, eval=eval_twice) if is_twice else prepared


def eval_twice(data: OpData, x: Array, size: Array) -> Array:
    """Source: ResizeBilinearKernel2x2. Rounding: every sum; halves are exact, except for subnormal numbers."""
    half, out = np.float32(0.5), np.empty(data.shape, np.float32)
    lower = np.concatenate([x[:, 1:], x[:, -1:]], axis=1)
    means = (x + lower) * half
    right, right_means = (np.concatenate([v[:, :, 1:], v[:, :, -1:]], axis=2) for v in (x, means))
    out[:, ::2, ::2], out[:, ::2, 1::2] = x, (x + right) * half
    out[:, 1::2, ::2], out[:, 1::2, 1::2] = means, (means + right_means) * half
    return out


def _rows(types: str, prepare: Prepare, last_version: int = 4) -> tuple[Kernel, ...]:
    return tuple(
        Kernel("RESIZE_BILINEAR", f"{t} int32 -> {t}", prepare, (1, last_version), (1,)) for t in types.split()
    )


REFERENCE = (
    *_rows("float32 uint8", interpolating(float_taps, by_column)),
    *_rows("int8 int16", interpolating(integer_taps, rounded)),
)


@meeting(needs(0, is_quantized, ranked(4, 4)), result(is_quantized), RECORDED_IMAGE)
def takes_codes(node: Node) -> bool:
    """Return whether codes have one scale, and the image no dimension of 0."""
    return True


@meeting(needs(0, ranked(4, 4)), RECORDED_IMAGE)
def takes_floats(node: Node) -> bool:
    """Return whether neither image nor output has a dimension of 0."""
    return bool(np.all(node.constant(1) > 0))


_RESIZE_BILINEAR = (
    *REFERENCE,
    *valid(opt(), *_rows("uint8", _by_row), *unclaimed_floats(REFERENCE)),
    *valid(opt("litert-1.0", cpu="x86-64"), *_rows("float32", prepare_optimized_float)),
    *valid(
        opt(until="tf-2.3"),
        *_rows("uint8", interpolating(float_taps, by_row, rounds=False), 3),
        *_rows("int8", interpolating(extrapolating_taps, wrapped), 3),
    ),
    *valid(tf1(), *_rows("uint8 int8", interpolating(float_taps, by_column, rounds=False), 2)),
    *valid(tf1("opt"), *_rows("uint8", interpolating(float_taps, by_row, rounds=False), 2)),
    *valid(
        xnnpack(), *(delegate(row, takes_codes) for row in _rows("uint8 int8", interpolating(coded_taps, halved_up)))
    ),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        *(delegate(row, takes_floats) for row in _rows("float32", interpolating(clipped_taps, flushed))),
    ),
)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare input rows and columns, one for every output row and column."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    shape = resized_shape(node, smallest=0)
    align, half = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
    rows, columns = (nearest(x.shape[d], shape[d], align, half) for d in (1, 2))
    for chosen, d in ((rows, 1), (columns, 2)):
        node.check(not chosen.size or chosen.min() >= 0, f"dimension {d}", x, expected="at least 1", got=x.shape[d])
    return Prepared((shape,), (rows, columns), eval_nearest)


def nearest(size: int, new_size: int, align: bool, half: bool) -> Array:
    """Compute the input position of every output position, in float32.

    Rounding: half away from zero with align_corners, else down.
    """
    real = (np.arange(new_size, dtype=np.float32) + np.float32(0.5 if half else 0)) * ratio(size, new_size, align)
    rounded = np.floor(real.astype(np.float64) + 0.5 if align else real)  # positions are not negative
    positions = np.minimum(rounded.astype(np.int64), size - 1)
    return np.maximum(positions, 0) if half and size else positions


def prepare_at_corners(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without the option half_pixel_centers. Source: tflite-micro (2025) resize_nearest_neighbor.cc."""
    return prepare(node.with_options(half_pixel_centers=False), arithmetic)


_X = f"{BITS_8}|{BITS_16}|{BITS_32}"

_ROW = Kernel("RESIZE_NEAREST_NEIGHBOR", f"{_X} int32 -> {_X}", prepare, (1, 4), shape_operands=(1,))
_AT_CORNERS = Kernel("RESIZE_NEAREST_NEIGHBOR", _ROW.types, prepare_at_corners, (1, 4), shape_operands=(1,))

_RESIZE_NEAREST_NEIGHBOR = (_ROW, *valid(micro(until="litert-2.1"), _AT_CORNERS))

#: The rows of all operators above.
KERNELS = (*_RESIZE_BILINEAR, *_RESIZE_NEAREST_NEIGHBOR)
