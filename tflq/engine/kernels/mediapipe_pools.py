"""MaxPoolingWithArgmax2D and MaxUnpooling2D of MediaPipe, which XNNPACK's delegate alone has.

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
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.delegation import UNCLAIMED, delegate, has_shape
from tflq.engine.kernels.families.native_options import SAME, VALID, integers
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.flushing import subnormals_as_zeros
from tflq.typing import Array

_MEMBERS = ("padding", "stride_w", "stride_h", "filter_w", "filter_h", "activation")
#: The last activation that the delegate lets pass, although it does not compute it.
_ACTIVATIONS = 3


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


def takes(node: Node) -> bool:
    """Return whether all operands are images, and the options those of a pool without overlap."""
    options = integers(node, _MEMBERS)
    present = [operand for operand in (*node.inputs, *node.outputs) if operand is not None]
    return (
        all(has_shape(operand, 4, 4) for operand in present)
        and options["padding"] in (SAME, VALID)
        and options["filter_h"] == options["stride_h"] > 0
        and options["filter_w"] == options["stride_w"] > 0
        and 0 <= options["activation"] <= _ACTIVATIONS
    )


def takes_valid(node: Node) -> bool:
    """Return whether the node is taken and has VALID padding."""
    return takes(node) and integers(node, _MEMBERS)["padding"] == VALID


def prepare_pool(node: Node, arithmetic: Arithmetic) -> Prepared:
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
    best, place = _seen(data, x, 0, 0), np.zeros(data.shape, np.uint32)
    for number in range(1, height * data.columns.shape[1]):
        column, row = divmod(number, height)
        value = _seen(data, x, row, column)
        with np.errstate(invalid="ignore"):
            is_greater = value > best
        best = np.where(is_greater, value, best)
        place[is_greater] = number
    return best, place.view(np.float32)


def _seen(data: PoolData, x: Array, row: int, column: int) -> Array:
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


def _pool(taken: Callable[[Node], bool] = takes) -> Kernel:
    return delegate(Kernel("MaxPoolingWithArgmax2D", "float32 -> float32 float32", prepare_pool), taken)


def _unpool(taken: Callable[[Node], bool] = takes) -> Kernel:
    return delegate(Kernel("MaxUnpooling2D", "float32 float32 -> float32", prepare_unpool), taken)


KERNELS = (
    *valid(xnnpack("litert-1.0", cpu="x86-64"), _pool()),
    *valid(xnnpack("litert-1.0", cpu="arm64 wasm"), *promising(UNCLAIMED, (_pool(),))),
    *valid(xnnpack("litert-1.0", "litert-2.0"), _unpool()),
    *valid(xnnpack("litert-2.1"), _unpool(takes_valid)),
)
