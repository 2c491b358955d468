"""CONV_2D by XNNPACK. Operands, options and refusals: tflq/engine/kernels/conv_2d/reference.py, hybrid.py.

8-bit codes: the reference's sums, scaled by a float32 multiplier. Floats and int8 filters: images, or pixels, quantized
asymmetrically.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitConv2DNode; XNNPACK's xnn_define_convolution_2d, qd8-f32-qc8w igemm.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.conv_2d.reference import prepare_quantized
from tflq.engine.kernels.conv_2d.shapes import shapes
from tflq.engine.kernels.delegation import (
    UNCLAIMED,
    delegate,
    has_bias_scales,
    has_filter_scales,
    has_recorded_image,
    has_shape,
    is_quantized,
    is_static,
)
from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.families.hybrid_sums import HybridSums
from tflq.engine.kernels.families.negative_padding import unread
from tflq.engine.kernels.families.operand_rows import Patches
from tflq.engine.kernels.families.xnnpack_scaling import convolution, rescaled, with_fitting_bias
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.dynamic_range_float32 import Rescale, quantize_rows_float32
from tflq.model.ir import TensorType
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, and weights per tensor or along the output channels."""
    x, w, bias, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    return (
        is_quantized(x)
        and is_quantized(y)
        and has_filter_scales(w, 0)
        and has_bias_scales(bias)
        and w.is_constant
        and bias.is_constant
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_shape(bias, 1, 1)
        and has_recorded_image(node)
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    x, w = node.input(0), node.input(1)
    is_by_channel = w.shape[3] == 1 and w.shape[0] == x.shape[3]
    stage = convolution(arithmetic, x, w, is_by_channel=is_by_channel, taps=w.shape[1] * w.shape[2])
    return rescaled(node, prepare_quantized(with_fitting_bias(node), arithmetic), stage, x, w, w.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    window: Window  # pixels
    shape: Shape  # of the output
    sums: HybridSums  # of products with the filters
    scale: Array  # of the filters, one each, float32
    rescale: Rescale
    clamp: NumberClamp
    quantized: int  # pixels that share a scale: 1, or all of an image


def takes_hybrid(node: Node) -> bool:
    """Return whether filters are constant int8, per tensor or along the output channels, and the bias constant."""
    x, w, bias = node.input(0), node.input(1), node.input(2)
    return (
        w.type == TensorType.INT8
        and has_filter_scales(w, 0)
        and w.is_constant
        and is_static(bias)
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_shape(bias, 1, 1)
        and has_recorded_image(node)
    )


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one matrix a group."""
    at, shape, count = shapes(node)
    w = node.input(1)
    assert w.quantization is not None  # takes saw to both
    assert w.value is not None
    matrices = np.split(w.value.reshape(w.shape[0], -1).astype(np.int16).T, count, axis=1)
    data = HybridData(
        window=at,
        shape=shape,
        sums=HybridSums.of(Patches(ZeroPoint(0), at, w.shape[3]), matrices, prod(shape[:3])),
        scale=np.broadcast_to(w.quantization.scale, w.shape[0]),
        rescale=arithmetic.xnnpack_rescale,
        clamp=float_range(node),
        quantized=1 if is_fully_connected(node, at, count) else at.height * at.width,
    )
    return Prepared((shape,), data, eval_hybrid)


def is_fully_connected(node: Node, at: Window, groups: int) -> bool:
    """Return whether XNNPACK makes a fully connected operator of it, which quantizes each pixel by itself."""
    filters, kernel_h, kernel_w, depth = node.input(1).shape
    strides = at.stride_h, at.stride_w
    return groups == 1 and (kernel_h, kernel_w) == strides == (1, 1) and depth + filters > 2


def eval_hybrid(data: HybridData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: the sum to float32, then as `rescale`. Padding: taps outside are left out."""
    rows = quantize_rows_float32(np.ascontiguousarray(x).reshape(-1, data.quantized * x.shape[3]))
    codes = (rows.codes.astype(np.int16) - rows.zero_point.astype(np.int16)[:, None]).reshape(x.shape)
    sums = np.empty(data.shape, np.int32)
    flat = sums.reshape(-1, data.shape[3])
    data.sums.into(codes, 0, flat)
    quantized = 1 if data.quantized == 1 else data.window.out_h * data.window.out_w
    scale = rows.scale[np.arange(len(flat)) // quantized, None]
    out = data.rescale(flat.astype(np.float32), scale, data.scale, bias.reshape(-1)).reshape(data.shape)
    return clamp_in_place(out, *data.clamp)


_HYBRID = (
    delegate(Kernel("CONV_2D", "float32 int8|uint8|int4 float32 -> float32", prepare_hybrid, (1, 8)), takes_hybrid),
)

_CODES = tuple(
    delegate(Kernel("CONV_2D", types, prepare, (1, 8)), takes)
    for types in ("uint8 uint8 int32 -> uint8", "int8 int8 int32 -> int8")
)

KERNELS = (
    *valid(xnnpack(), *_CODES),
    *valid(xnnpack(until="litert-2.1"), *map(unread, _CODES)),
    *valid(xnnpack("litert-2.1", cpu="x86-64 arm64-a53"), *_HYBRID),
    *valid(xnnpack("litert-2.1", cpu="wasm"), *promising(UNCLAIMED, _HYBRID)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _HYBRID)),
)
