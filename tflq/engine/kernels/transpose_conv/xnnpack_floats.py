"""TRANSPOSE_CONV of float32 by XNNPACK. Operands and options: tflq/engine/kernels/transpose_conv/reference.py.

Convolution2DTransposeBias of MediaPipe is the same operator: x, w, bias -> y. Its options are a C structure of padding
and strides (W, H); the shape is the one that the file records of y. XNNPACK's delegate alone has it.

Each output pixel is a chain of fused multiply-adds from the bias on, over those taps (ky, kx, c in order) that meet an
input pixel: output pixels at the same place between steps meet the same taps, and are one matrix product.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitTransposeConvNode, VisitMediaPipeDeconvolutionNode; XNNPACK's
deconvolution2d_nhwc_f32, subconvolutions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.delegation import UNCLAIMED, delegate, has_recorded_image, has_shape, is_static
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.families.fused_products import FusedProduct, open_range
from tflq.engine.kernels.families.native_options import SAME, VALID, integers
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape, promising, valid
from tflq.engine.kernels.transpose_conv.xnnpack import filter_fits, spread
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.model.ir import Record, TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    window: Window  # of the convolution that is transposed: its image is the output here, pixels
    shape: Shape  # of the output
    clamp: NumberClamp


def takes(node: Node) -> bool:
    """Return whether filter and bias are constant and the filter fits."""
    w, x, bias = node.input(1), node.input(2), node.optional(3)
    return (
        is_static(w)
        and (bias is None or (is_static(bias) and has_shape(bias, 1, 1)))
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_recorded_image(node)
        and filter_fits(node)
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    at, shape = spread(node)
    return Prepared((shape,), OpData(at, shape, open_range(node)), evaluate)


def evaluate(data: OpData, out_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Rounding: one for each product and sum, from the bias on. Padding: products with 0."""
    out = np.zeros(data.shape, np.float32)
    added, at = bias_of(bias, data.shape[3], np.float32), data.window
    for first_y in range(min(at.stride_h, data.shape[1])):
        for first_x in range(min(at.stride_w, data.shape[2])):
            part = out[:, first_y :: at.stride_h, first_x :: at.stride_w]
            rows = _met(first_y, part.shape[1], at.stride_h, at.pad_top, at.kernel_h)
            columns = _met(first_x, part.shape[2], at.stride_w, at.pad_left, at.kernel_w)
            part[...] = _product(data, x, w, added, rows, columns).reshape(part.shape)
    return out


def _met(first: int, count: int, stride: int, before: int, kernel: int) -> tuple[Array, Array]:
    """Return the taps that positions `first`, `first + stride` ... meet, and the input's position (positions, taps)."""
    taps = np.arange((first + before) % stride, kernel, stride)
    start = (first + before - taps) // stride
    return taps, start + np.arange(count)[:, None]


def _product(
    data: OpData, x: Array, w: Array, bias: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]
) -> Array:
    """Return the pixels (N * rows * columns, O) that meet these taps."""
    (taps_y, ys), (taps_x, xs) = rows, columns
    count, height, width, depth = x.shape
    if not len(taps_y) or not len(taps_x):
        return np.broadcast_to(np.clip(bias, *data.clamp), (count * len(ys) * len(xs), len(bias)))
    is_inside = ((ys >= 0) & (ys < height))[:, None, :, None] & ((xs >= 0) & (xs < width))[None, :, None, :]
    at_y, at_x = np.clip(ys, 0, height - 1)[:, None, :, None], np.clip(xs, 0, width - 1)[None, :, None, :]
    patches = np.where(is_inside[..., None], x[:, at_y, at_x], np.float32(0))
    matrix = w[:, taps_y][:, :, taps_x].reshape(len(w), -1).T
    image = np.ascontiguousarray(patches.reshape(1, 1, -1, len(taps_y) * len(taps_x) * depth))
    out = np.empty((image.shape[2], len(w)), np.float32)
    FusedProduct.of_rows(matrix, len(out)).into(image, bias, data.clamp, out)()
    return out


_MEMBERS = ("padding", "stride_w", "stride_h")
#: Paddings of the schema's options by those of the structure.
_PADDINGS = {SAME: 0, VALID: 1}


def as_transpose_conv(node: Node) -> Node:
    """Return a Convolution2DTransposeBias as TRANSPOSE_CONV."""
    x, w, bias, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    recorded = y.shape if y.recorded is None else y.recorded
    target = np.array([x.shape[0], *recorded[1:3], w.shape[0]], np.int32)
    shape = Operand(-1, "the recorded shape", TensorType.INT32, target.shape, value=target)
    options = integers(node, _MEMBERS)
    fields = {**options, "padding": _PADDINGS[options["padding"]], "fused_activation_function": 0}
    return replace(node, inputs=(shape, w, x, bias), options=Record("TransposeConvOptions", fields))


def takes_custom(node: Node) -> bool:
    """Return whether the node is taken as TRANSPOSE_CONV."""
    options = integers(node, _MEMBERS)
    if options["padding"] not in _PADDINGS or min(options["stride_h"], options["stride_w"]) <= 0:
        return False
    x, w = node.input(0), node.input(1)
    is_image = has_shape(x, 4, 4) and has_shape(w, 4, 4) and has_recorded_image(node)
    return is_image and takes(as_transpose_conv(node))


def prepare_custom(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare as TRANSPOSE_CONV."""
    return replace(prepare(as_transpose_conv(node), arithmetic), eval=eval_custom)


def eval_custom(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Evaluate as TRANSPOSE_CONV, whose order of operands is another."""
    return evaluate(data, np.zeros(0, np.int32), w, x, bias)


_CUSTOM = (
    delegate(Kernel("Convolution2DTransposeBias", "float32 float32 float32 -> float32", prepare_custom), takes_custom),
)

KERNELS = (
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        delegate(Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare, (1, 5), (0,)), takes),
        *_CUSTOM,
    ),
    *valid(xnnpack("litert-2.1", cpu="arm64 wasm"), *promising(UNCLAIMED, _CUSTOM)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _CUSTOM)),
)
