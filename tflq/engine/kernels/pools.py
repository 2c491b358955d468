"""MAX_POOL_2D, AVERAGE_POOL_2D, L2_POOL_2D, and MediaPipe's pools.

MAX_POOL_2D: the largest of the taps inside the image.

| operand | shape        | types                       | quantization                            |
|---------|--------------|-----------------------------|-----------------------------------------|
| x       | N, H, W, C   | float32, uint8, int8, int16 | per tensor                              |
| y       | N, OH, OW, C | as x                        | meant to be x's: nothing is requantized |

Options: padding, strides, filter_height, filter_width, fused activation.
XNNPACK compares floats in a tree of nine taps, down the columns of the window; taps outside the image are those at the
border. It reads subnormals as zeros of their sign, and takes the second of two that are equal or not comparable.
Source: LiteRT 2.3, reference/pooling.h MaxPool; reference/integer_ops/pooling.h MaxPool; xnnpack_delegate.cc
VisitMaxPool2DNode, CheckPoolingParams; XNNPACK's f32-maxpool 9p minmax, indirection.c xnn_indirection_init_maxpool2d.

AVERAGE_POOL_2D: the mean of the taps inside the image. XNNPACK takes floats: xnnpack.py.

| operand | shape        | types                       | quantization                                |
|---------|--------------|-----------------------------|---------------------------------------------|
| x       | N, H, W, C   | float32, uint8, int8, int16 | per tensor                                  |
| y       | N, OH, OW, C | as x                        | meant to be x's: nothing is requantized     |

Options: padding, strides, filter_height, filter_width, fused activation.
Source: LiteRT 2.3, reference/pooling.h AveragePool; reference/integer_ops/pooling.h AveragePool.

AVERAGE_POOL_2D of float32 by XNNPACK on x86-64.

Taps go down the columns of the window, nine at a time: their sum, in a tree, is added to that of the taps before. The
total is multiplied by the reciprocal of the number of taps inside the image. NaN becomes the activation's lower limit.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitAveragePool2DNode, CheckPoolingParams; XNNPACK's
average_pooling2d_nhwc_f32, f32-avgpool 9p minmax, and its indirection.

L2_POOL_2D: the root of the mean square of the taps inside the image.

| operand | shape        | types   |
|---------|--------------|---------|
| x       | N, H, W, C   | float32 |
| y       | N, OH, OW, C | float32 |

Options: padding, strides, filter_height, filter_width, fused activation.
Source: LiteRT 2.3, pooling.cc L2Eval; reference/pooling.h L2Pool.

MaxPoolingWithArgmax2D and MaxUnpooling2D of MediaPipe, which XNNPACK's delegate alone has.

| operator               | operands                                        | results                             |
|------------------------|-------------------------------------------------|-------------------------------------|
| MaxPoolingWithArgmax2D | x (N, H, W, C) float32                          | y (N, OH, OW, C) float32, its places |
| MaxUnpooling2D         | x (N, H, W, C) float32, places (N, H, W, C)     | y (N, H * KH, W * KW, C) float32    |

Places are uint32 numbers in a tensor that the file declares as float32: column by column inside the window, KH to a
column.
Options: a C structure of padding, stride (W, H), filter (W, H) and activation, which is ignored. Strides are the size
of the filter. MaxUnpooling2D takes VALID padding alone from LiteRT 2.3 on.
Source: LiteRT 1.0 to 2.3 xnnpack_delegate.cc VisitMediaPipeMaxPoolingNode, VisitMediaPipeUnpoolingNode,
CheckMediaPipePoolParams; XNNPACK argmax-pooling-nhwc.c, f32-argmaxpool, unpooling-nhwc.c, x32-unpool, indirection.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.flushing import add, begin_flushing, end_flushing, multiply
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.delegation import ACTIVATIONS, UNCLAIMED, delegate, has_shape
from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.families.custom_options import SAME, VALID, integers
from tflq.engine.kernels.families.ordered import open_range
from tflq.engine.kernels.families.pooling import (
    OpData,
    average_codes,
    averaging,
    columns_inside,
    inside,
    itself,
    largest,
    prepare_pool,
    root,
    square,
)
from tflq.engine.kernels.families.unary import eval_ufunc, unclaimed_floats
from tflq.engine.kernels.families.xnnpack import OpData as ElementData
from tflq.engine.kernels.families.xnnpack import Operation, evaluate
from tflq.engine.kernels.geometry.windows import Window, read_tap
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling, promising, valid
from tflq.engine.kernels.validity import opt, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.estimates import subnormals_as_zeros
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Taps that XNNPACK compares in one tree.
_TREE = 9


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without a multiplier."""
    return prepare_pool(node, CARRIER[node.input(0).type], eval_quantized)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), eval_float)


@filling(lambda data, x: (data.shape, x.dtype))
def eval_quantized(data: OpData, out: Array, x: Array) -> Call:
    """Source: MaxPool. Nothing is rounded."""
    lowest, low, high = map(x.dtype.type, (type_range(x.dtype).low, *data.clamp))
    return largest(np.ascontiguousarray(x), data.window, lowest, low, high, out)


@filling(lambda data, x: (data.shape, np.float32))
def eval_float(data: OpData, out: Array, x: Array) -> Call:
    """Source: MaxPool (float). A NaN never wins."""
    low, high = data.clamp
    return largest(np.ascontiguousarray(x), data.window, -np.finfo(np.float32).max, low, high, out)


_VERSIONS = (1, 3)


def takes_float(node: Node) -> bool:
    """Return whether steps leave no pixel out."""
    return (
        has_shape(node.input(0))
        and 0 < int(node.options["stride_h"]) <= int(node.options["filter_height"])
        and 0 < int(node.options["stride_w"]) <= int(node.options["filter_width"])
    )


def prepare_tree(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp; a window of one tap is a clamp alone, or a copy."""
    prepared = prepare_float(node, arithmetic)
    data: OpData = prepared.data
    node.check(min(data.shape) > 0, "the window does not fit into the image", got=node.input(0).shape)
    if data.window.taps == 1:
        if limits(node)[0] is None:
            return replace(prepared, data=np.positive, eval=eval_ufunc)
        return replace(prepared, data=ElementData(Operation.COPY, open_range(node)), eval=evaluate)
    return replace(prepared, data=(data, open_range(node)), eval=eval_tree)


@filling(lambda data, x: (data[0].shape, np.float32))
def eval_tree(data: tuple[OpData, NumberClamp], out: Array, x: Array) -> Call:
    """Rounding: none. The reference gives the same if every number is finite and normal, or +0."""
    at, (low, high) = data
    image = np.ascontiguousarray(x)
    bits, reference = image.view(np.uint32), eval_float.bind(at, out, image)

    def call() -> None:
        exponents = bits & 0x7F800000
        if not ((bits != 0) & ((exponents == 0) | (exponents == 0x7F800000))).any():
            reference()
            return
        best = np.zeros(0)
        for first in range(0, at.window.taps, _TREE):
            taps = [_seen(at, image, tap) for tap in range(first, min(first + _TREE, at.window.taps))]
            taps += [taps[0]] * (_TREE - len(taps))
            rest = _greater(_greater(_greater(taps[0], taps[1]), taps[8]), _greater(taps[6], taps[7]))
            most = _greater(_greater(_greater(taps[2], taps[3]), _greater(taps[4], taps[5])), rest)
            best = _greater(most, low) if first == 0 else _greater(best, most)
            best = np.where(best < high, best, high)
        out[...] = best

    return call


def _seen(at: OpData, x: Array, tap: int) -> Array:
    """Return the elements that the output's pixels see at one tap, at the border outside; subnormals as zeros."""
    column, row = divmod(tap, at.window.kernel_h)
    return subnormals_as_zeros(read_tap(x, at.window, row, column, outside=None))


def _greater(one: Array, other: Array | np.float32) -> Array:
    """Return the greater of two; the second if they are equal, or one is NaN. Source: MAXPS."""
    with np.errstate(invalid="ignore"):
        return np.where(one > other, one, other)


_MAX_POOL_2D = (
    Kernel("MAX_POOL_2D", "float32 -> float32", prepare_float, _VERSIONS),
    Kernel("MAX_POOL_2D", "uint8 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("MAX_POOL_2D", "int8 -> int8", prepare_quantized, _VERSIONS),
    Kernel("MAX_POOL_2D", "int16 -> int16", prepare_quantized, _VERSIONS),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        delegate(Kernel("MAX_POOL_2D", "float32 -> float32", prepare_tree, _VERSIONS), takes_float),
    ),
)


_LARGEST_IMAGE = 2**15  # taps whose 16-bit sum stays inside the source's int32


def prepare_quantized_reference(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without a multiplier."""
    dtype = CARRIER[node.input(0).type]
    prepared = prepare_pool(node, dtype, eval_quantized_reference)
    window = prepared.data.window
    taps = min(window.kernel_h, window.height) * min(window.kernel_w, window.width)
    if taps * 2 ** (8 * dtype.itemsize) > _LARGEST_IMAGE * 2**16:
        raise UndefinedResultError(node.op, f"sums of {taps} taps overflow int32")
    return prepared


@filling(lambda data, x: (data.shape, x.dtype))
def eval_quantized_reference(data: OpData, out: Array, x: Array) -> Call:
    """Source: AveragePool. Rounding: half away from zero. Padding: taps outside are not counted."""
    return average_codes.bound(np.ascontiguousarray(x), data.window, *data.clamp, out)


def prepare_float_reference(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), eval_float_reference)


@filling(lambda data, x: (data.shape, np.float32))
def eval_float_reference(data: OpData, out: Array, x: Array) -> Call:
    """Source: AveragePool (float). Rounding: sums over ky, kx in order, one division."""
    return averaging(itself, itself).bound(np.ascontiguousarray(x), data.window, *data.clamp, out)


_REFERENCE = (
    Kernel("AVERAGE_POOL_2D", "float32 -> float32", prepare_float_reference, _VERSIONS),
    Kernel("AVERAGE_POOL_2D", "uint8 -> uint8", prepare_quantized_reference, _VERSIONS),
    Kernel("AVERAGE_POOL_2D", "int8 -> int8", prepare_quantized_reference, _VERSIONS),
    Kernel("AVERAGE_POOL_2D", "int16 -> int16", prepare_quantized_reference, _VERSIONS),
)


_TAPS = 9  # in a tree


def takes(node: Node) -> bool:
    """Return whether the window has more than one tap and its steps leave no pixel out."""
    height, width = int(node.options["filter_height"]), int(node.options["filter_width"])
    return (
        has_shape(node.input(0), 4, 4)
        and 0 < int(node.options["stride_h"]) <= height
        and 0 < int(node.options["stride_w"]) <= width
        and height * width > 1
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    prepared = prepare_pool(node, np.dtype(np.float32), evaluate_xnnpack)
    data: OpData = prepared.data
    node.check(min(data.shape) > 0, "the window does not fit into the image", got=node.input(0).shape)
    return Prepared(prepared.shapes, OpData(data.window, data.shape, open_range(node)), evaluate_xnnpack)


@filling(lambda data, x: (data.shape, np.float32))
def evaluate_xnnpack(data: OpData, out: Array, x: Array) -> Call:
    """Rounding: every sum, the reciprocal and the product."""
    return average.bound(np.ascontiguousarray(x), data.window, *data.clamp, out)


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


_XNNPACK = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    delegate(Kernel("AVERAGE_POOL_2D", "float32 -> float32", prepare, (1, 3)), takes),
)


def prepare_l2_pool_2d(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), evaluate_l2_pool_2d)


def evaluate_l2_pool_2d(data: OpData, x: Array) -> Array:
    """Source: L2Pool. Rounding: squares and their sum over ky, kx in order, one division, one root."""
    out, (low, high) = np.empty(data.shape, np.float32), data.clamp
    averaging(square, root)(np.ascontiguousarray(x), data.window, low, high, out)
    return out


_L2_POOL_2D_REFERENCE = (Kernel("L2_POOL_2D", "float32 -> float32", prepare_l2_pool_2d, (1, 1)),)
_L2_POOL_2D = (*_L2_POOL_2D_REFERENCE, *valid(opt(), *unclaimed_floats(_L2_POOL_2D_REFERENCE)))


_MEMBERS = ("padding", "stride_w", "stride_h", "filter_w", "filter_h", "activation")


@dataclass(frozen=True, slots=True, eq=False)
class PoolData:
    """Constants of MaxPoolingWithArgmax2D."""

    rows: Array  # of the input, (OH, KH)
    columns: Array  # of the input, (OW, KW)
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class UnpoolData:
    """Constants of MaxUnpooling2D."""

    window: tuple[int, int]  # KH, KW
    shape: Shape


def takes_mediapipe_pools(node: Node) -> bool:
    """Return whether all operands are images, and the options those of a pool without overlap."""
    options = integers(node, _MEMBERS)
    present = [operand for operand in (*node.inputs, *node.outputs) if operand is not None]
    return (
        all(has_shape(operand, 4, 4) for operand in present)
        and options["padding"] in (SAME, VALID)
        and options["filter_h"] == options["stride_h"] > 0
        and options["filter_w"] == options["stride_w"] > 0
        and 0 <= options["activation"] <= ACTIVATIONS
    )


def takes_valid(node: Node) -> bool:
    """Return whether the node is taken and has VALID padding."""
    return takes_mediapipe_pools(node) and integers(node, _MEMBERS)["padding"] == VALID


def prepare_pool_mediapipe_pools(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Find the input's row and column of each place; outside the image that of the border."""
    x, options = node.input(0), integers(node, _MEMBERS)
    is_same = options["padding"] == SAME
    rows = _places(x.shape[1], options["filter_h"], is_same=is_same)
    columns = _places(x.shape[2], options["filter_w"], is_same=is_same)
    shape = (x.shape[0], len(rows), len(columns), x.shape[3])
    node.check(min(shape[1:]) > 0, "image smaller than the window", x, got=x.shape)
    return Prepared((shape, shape), PoolData(rows, columns, shape), eval_pool)


def _places(size: int, kernel: int, *, is_same: bool) -> Array:
    """Return the positions of the input that each step sees, (steps, kernel)."""
    steps = -(-size // kernel) if is_same else size // kernel
    before = (steps * kernel - size) // 2 if is_same else 0
    return np.clip(np.arange(steps * kernel).reshape(steps, kernel) - before, 0, size - 1)


def eval_pool(data: PoolData, x: Array) -> tuple[Array, Array]:
    """Rounding: none; subnormals become zeros of their sign.

    The first of equal values wins, and a NaN in the first place; a NaN elsewhere never wins.
    """
    height = data.rows.shape[1]
    best, place = _seen_mediapipe_pools(data, x, 0, 0), np.zeros(data.shape, np.uint32)
    for number in range(1, height * data.columns.shape[1]):
        column, row = divmod(number, height)
        value = _seen_mediapipe_pools(data, x, row, column)
        with np.errstate(invalid="ignore"):
            is_greater = value > best
        best = np.where(is_greater, value, best)
        place[is_greater] = number
    return best, place.view(np.float32)


def _seen_mediapipe_pools(data: PoolData, x: Array, row: int, column: int) -> Array:
    """Return the elements that each step sees at one place of its window."""
    return subnormals_as_zeros(x[:, data.rows[:, row]][:, :, data.columns[:, column]])


def prepare_unpool(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    x, places, options = node.input(0), node.input(1), integers(node, _MEMBERS)
    node.check(x.shape == places.shape, "shape of the places", places, expected=x.shape, got=places.shape)
    height, width = options["filter_h"], options["filter_w"]
    shape = (x.shape[0], x.shape[1] * height, x.shape[2] * width, x.shape[3])
    return Prepared((shape,), UnpoolData((height, width), shape), eval_unpool)


def eval_unpool(data: UnpoolData, x: Array, places: Array) -> Array:
    """Move every element to its place; all others are 0. An element whose place lies outside the window is dropped."""
    height, width = data.window
    out = np.zeros(data.shape, np.float32)
    numbers = np.ascontiguousarray(places).view(np.uint32)
    for number in range(height * width):
        column, row = divmod(number, height)
        out[:, row::height, column::width] = np.where(numbers == number, x, np.float32(0))
    return out


def _pool(taken: Callable[[Node], bool] = takes_mediapipe_pools) -> Kernel:
    return delegate(Kernel("MaxPoolingWithArgmax2D", "float32 -> float32 float32", prepare_pool_mediapipe_pools), taken)


def _unpool(taken: Callable[[Node], bool] = takes_mediapipe_pools) -> Kernel:
    return delegate(Kernel("MaxUnpooling2D", "float32 float32 -> float32", prepare_unpool), taken)


_MEDIAPIPE_POOLS = (
    *valid(xnnpack("litert-1.0", cpu="x86-64"), _pool()),
    *valid(xnnpack("litert-1.0", cpu="arm64 wasm"), *promising(UNCLAIMED, (_pool(),))),
    *valid(xnnpack("litert-1.0", "litert-2.0"), _unpool()),
    *valid(xnnpack("litert-2.1"), _unpool(takes_valid)),
)

#: The rows of all operators above.
KERNELS = (*_MAX_POOL_2D, *_REFERENCE, *_XNNPACK, *_L2_POOL_2D, *_MEDIAPIPE_POOLS)
