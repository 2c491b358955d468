"""MAX_POOL_2D: the largest of the taps inside the image.

| operand | shape        | types                       | quantization                            |
|---------|--------------|-----------------------------|-----------------------------------------|
| x       | N, H, W, C   | float32, uint8, int8, int16 | per tensor                              |
| y       | N, OH, OW, C | as x                        | meant to be x's: nothing is requantized |

Options: padding, strides, filter_height, filter_width, fused activation.
XNNPACK compares floats in a tree of nine taps, down the columns of the window; taps outside the image are those at the
border. It reads subnormals as zeros of their sign, and takes the second of two that are equal or not comparable.
Source: LiteRT 2.3, reference/pooling.h MaxPool; reference/integer_ops/pooling.h MaxPool; xnnpack_delegate.cc
VisitMaxPool2DNode, CheckPoolingParams; XNNPACK's f32-maxpool 9p minmax, indirection.c xnn_indirection_init_maxpool2d.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.delegation import delegate, has_shape
from tflq.engine.kernels.families.activation import limits
from tflq.engine.kernels.families.fused_products import open_range
from tflq.engine.kernels.families.pooling import OpData, largest, prepare_pool
from tflq.engine.kernels.families.xnnpack_floats import OpData as Elementwise
from tflq.engine.kernels.families.xnnpack_floats import evaluate
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.flushing import subnormals_as_zeros
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Taps that XNNPACK compares in one tree, and the last activation that it has.
_TREE, _ACTIVATIONS = 9, 3


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without a multiplier."""
    return prepare_pool(node, CARRIER[node.input(0).type], eval_quantized)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    return prepare_pool(node, np.dtype(np.float32), eval_float)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: MaxPool. Nothing is rounded."""
    out = np.empty(data.shape, x.dtype)
    lowest, low, high = map(x.dtype.type, (type_range(x.dtype).low, *data.clamp))
    largest(np.ascontiguousarray(x), data.window, lowest, low, high, out)
    return out


def eval_float(data: OpData, x: Array) -> Array:
    """Source: MaxPool (float). A NaN never wins."""
    out, (low, high) = np.empty(data.shape, np.float32), data.clamp
    largest(np.ascontiguousarray(x), data.window, -np.finfo(np.float32).max, low, high, out)
    return out


_VERSIONS = (1, 3)


def takes_float(node: Node) -> bool:
    """Return whether steps leave no pixel out, and XNNPACK has the activation."""
    return (
        has_shape(node.input(0))
        and 0 < int(node.options["stride_h"]) <= int(node.options["filter_height"])
        and 0 < int(node.options["stride_w"]) <= int(node.options["filter_width"])
        and int(node.options["fused_activation_function"]) <= _ACTIVATIONS
    )


def prepare_tree(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp; a window of one tap is a clamp alone, or a copy."""
    prepared = prepare_float(node, arithmetic)
    data: OpData = prepared.data
    node.check(min(data.shape) > 0, "the window does not fit into the image", got=node.input(0).shape)
    if data.window.taps == 1:
        return replace(prepared, data=limits(node), eval=eval_one_tap)
    return replace(prepared, data=(data, open_range(node)), eval=eval_tree)


def eval_one_tap(data: tuple[float | None, float | None], x: Array) -> Array:
    """Rounding: none. Source: xnn_unary_clamp, which is left out if it is open."""
    low, high = (None if limit is None else np.float32(limit) for limit in data)
    return x.copy() if low is None else evaluate(Elementwise(np.positive, NumberClamp(low, high)), x)


def eval_tree(data: tuple[OpData, NumberClamp], x: Array) -> Array:
    """Rounding: none. The reference gives the same if every number is finite and normal, or +0."""
    at, (low, high) = data
    bits = np.ascontiguousarray(x).view(np.uint32)
    exponents = bits & 0x7F800000
    if not ((bits != 0) & ((exponents == 0) | (exponents == 0x7F800000))).any():
        return eval_float(at, x)
    best = np.zeros(0)
    for first in range(0, at.window.taps, _TREE):
        taps = [_seen(at, x, tap) for tap in range(first, min(first + _TREE, at.window.taps))]
        taps += [taps[0]] * (_TREE - len(taps))
        rest = _greater(_greater(_greater(taps[0], taps[1]), taps[8]), _greater(taps[6], taps[7]))
        most = _greater(_greater(_greater(taps[2], taps[3]), _greater(taps[4], taps[5])), rest)
        best = _greater(most, low) if first == 0 else _greater(best, most)
        best = np.where(best < high, best, high)
    return np.asarray(best, np.float32)


def _seen(at: OpData, x: Array, tap: int) -> Array:
    """Return the elements that the output's pixels see at one tap; subnormals as zeros."""
    column, row = divmod(tap, at.window.kernel_h)
    ys = np.arange(at.window.out_h) * at.window.stride_h + row - at.window.pad_top
    xs = np.arange(at.window.out_w) * at.window.stride_w + column - at.window.pad_left
    rows = x[:, np.clip(ys, 0, at.window.height - 1)]
    return subnormals_as_zeros(rows[:, :, np.clip(xs, 0, at.window.width - 1)])


def _greater(one: Array, other: Array | np.float32) -> Array:
    """Return the greater of two; the second if they are equal, or one is NaN. Source: MAXPS."""
    with np.errstate(invalid="ignore"):
        return np.where(one > other, one, other)


KERNELS = (
    Kernel("MAX_POOL_2D", "float32 -> float32", prepare_float, _VERSIONS),
    Kernel("MAX_POOL_2D", "uint8 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("MAX_POOL_2D", "int8 -> int8", prepare_quantized, _VERSIONS),
    Kernel("MAX_POOL_2D", "int16 -> int16", prepare_quantized, _VERSIONS),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        delegate(Kernel("MAX_POOL_2D", "float32 -> float32", prepare_tree, _VERSIONS), takes_float),
    ),
)
