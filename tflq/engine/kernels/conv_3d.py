"""CONV_3D and CONV_3D_TRANSPOSE.

CONV_3D: convolution of volumes.

| operand | shape                | types   |
|---------|----------------------|---------|
| x       | N, D, H, W, C        | float32 |
| w       | KD, KH, KW, C, O     | float32 |
| bias    | O, may be absent     | float32 |
| y       | N, OD, OH, OW, O     | float32 |

Options: padding, strides, dilations, fused activation.
The optimized resolver up to 2.14 multiplies patches and weights as Eigen multiplies matrices.
Source: LiteRT 2.3, conv3d.cc; reference/conv3d.h Conv3D. TensorFlow 2.14, conv3d.cc EvalFloat; optimized_ops.h Conv3D;
cpu_backend_gemm_eigen.cc.

CONV_3D_TRANSPOSE: the gradient of a convolution of volumes.

| operand      | shape            | types   |
|--------------|------------------|---------|
| output_shape | 5                | int32   |
| w            | KD, KH, KW, O, C | float32 |
| x            | N, D, H, W, C    | float32 |
| bias         | O, may be absent | float32 |
| y            | output_shape     | float32 |

Options: padding, strides, dilations, fused activation. The convolution of y must give volumes of x's size.
Source: LiteRT 2.3, conv3d_transpose.cc; reference/conv3d_transpose.h Conv3DTranspose.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from tflq.engine.kernels.checks import integers, require_rank, require_size
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.ordered import finish_pixels
from tflq.engine.kernels.families.unary import unclaimed_floats
from tflq.engine.kernels.geometry.volumes import (
    OpData,
    Window3D,
    check_operands,
    convolve,
    data_of,
    spread_floats,
    window,
)
from tflq.engine.kernels.geometry.windows import Axis
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, close, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse empty volumes and filters; an empty batch is fine."""
    x, w = node.input(0), node.input(1)
    check_operands(node, x, w, 3, 4, node.optional(2))
    for operand, sizes in ((x, x.shape[1:]), (w, w.shape)):
        node.check(min(sizes) > 0, "sizes", operand, expected="above 0", got=list(sizes))
    at = window(node, x.shape[1:4], w.shape[:3])
    shape = (x.shape[0], *at.out, w.shape[4])
    return Prepared((shape,), data_of(node, at, shape), evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: Conv3D. Rounding: product and sum apart, one float32 sum over kd, ky, kx, c, then the bias."""
    out = np.empty(data.shape, np.float32)
    biases = np.zeros(w.shape[4], np.float32) if bias is None else bias.reshape(-1)
    convolve(np.ascontiguousarray(x), np.ascontiguousarray(w), biases, data.window, w.shape[4], *data.clamp, out)
    return out


ROWS = (Kernel("CONV_3D", "float32 float32 float32? -> float32", prepare, (1, 1)),)


def prepare_by_eigen(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, which also sums dilated windows."""
    prepared = prepare(node, arithmetic)
    is_dilated = any(axis.dilation > 1 for axis in prepared.data.window)
    if is_dilated or 0 in prepared.data.shape:
        return prepared
    return replace(prepared, eval=partial(eval_by_eigen, cache=arithmetic.first_level_cache))


def eval_by_eigen(data: OpData, x: Array, w: Array, bias: Array | None = None, *, cache: int) -> Array:
    """Rounding: product and sum apart, in Eigen's order of k, bias last. Padding: products with 0."""
    columns = np.ascontiguousarray(w).reshape(-1, w.shape[4])
    sums = eigen.product(columns, patches(x, data.window).reshape(-1, len(columns)), cache=cache)
    if bias is not None:
        sums += bias.reshape(-1)
    return clamp_in_place(sums.reshape(data.shape), *data.clamp)


def patches(x: Array, window: Window3D) -> Array:
    """Return N, D, H, W, C as N, OD, OH, OW, KD * KH * KW, C; 0 outside of the volume."""
    taps = list(product(*(range(axis.kernel) for axis in window)))
    out = np.zeros((x.shape[0], *window.out, len(taps), x.shape[4]), np.float32)
    for number, tap in enumerate(taps):
        written, read = zip(*(_seen(axis, at) for axis, at in zip(window, tap, strict=True)), strict=True)
        out[(slice(None), *written, number)] = x[(slice(None), *read)]
    return out


def _seen(axis: Axis, tap: int) -> tuple[slice, slice]:
    """Return the positions at which that tap lies inside, and the elements that it meets there."""
    start = tap - axis.before
    first = max(0, -(start // axis.stride))
    last = min(axis.out, (axis.size - 1 - start) // axis.stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(start + first * axis.stride, start + last * axis.stride, axis.stride)


DILATED = close("sums of dilated windows are not reproduced; others are the same bits")

_CONV_3D = (
    *ROWS,
    *valid(
        opt(until="tflite-2.14"),
        Kernel("CONV_3D", "float32 float32 float32? -> float32", prepare_by_eigen, (1, 1), exactness=DILATED),
    ),
    *valid(opt("litert-1.0"), *unclaimed_floats(ROWS)),
)


def prepare_conv_3d_transpose(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an output shape that the convolution would not make x of."""
    target, w, x = node.input(0), node.input(1), node.input(2)
    require_rank(node, target, 1)
    check_operands(node, x, w, 4, 3, node.optional(3))
    shape = integers(node, 0)
    node.check(len(shape) == 5, "number of elements", target, expected=5, got=len(shape))
    require_size(node, target, shape)
    ends = (x.shape[0], w.shape[3])
    node.check((shape[0], shape[4]) == ends, "batch and channels of the shape", target, expected=ends, got=shape)
    at = window(node, shape[1:4], w.shape[:3])
    node.check(at.out == x.shape[1:4], "shape does not fit", target, expected=list(x.shape[1:4]), got=list(at.out))
    return Prepared((shape,), data_of(node, at, shape), evaluate_conv_3d_transpose)


def evaluate_conv_3d_transpose(data: OpData, _: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: Conv3DTranspose. Rounding: product and sum apart, float32 sums in x's order, then the bias."""
    out = np.empty(data.shape, np.float32)
    biases = np.zeros(w.shape[3], np.float32) if bias is None else bias.reshape(-1)
    filters = np.ascontiguousarray(w.swapaxes(3, 4))
    out.fill(0)
    spread_floats(np.ascontiguousarray(x), filters, data.window, out)
    finish_pixels(out.reshape(-1, data.shape[4]), biases, *data.clamp)
    return out


_REFERENCE = (
    Kernel(
        "CONV_3D_TRANSPOSE",
        "int32 float32 float32 float32? -> float32",
        prepare_conv_3d_transpose,
        (1, 1),
        shape_operands=(0,),
    ),
)
_CONV_3D_TRANSPOSE = (*_REFERENCE, *valid(opt(), *unclaimed_floats(_REFERENCE)))

#: The rows of all operators above.
KERNELS = (*_CONV_3D, *_CONV_3D_TRANSPOSE)
