"""TRANSPOSE_CONV by XNNPACK. Operands, options and refusals: kernels/transpose_conv/reference.py, hybrid.py.

8-bit codes: the reference's sums, scaled by a float32 multiplier. Up to 2.14, weights with a scale for each channel are
not taken. Floats and int8 filters: images quantized asymmetrically.

VALID padding, from LiteRT 1.0 on: the input's size decides the output's, and the shape operand only how many pixels the
last step leaves. The other kernels refuse a shape operand that does not belong to the input, and so does XNNPACK with
SAME padding; in tflite-runtime it lets XNNPACK write beyond the output.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitTransposeConvNode, CalculateTransposeConvPaddings; XNNPACK's
deconvolution2d_nhwc_qd8_f32_qc8w. TensorFlow 2.12 xnnpack_delegate.cc VisitTransposeConvNode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.families.xnnpack_scaling import gemm, rescaled, with_fitting_bias
from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.transpose_conv.reference import prepare_quantized, scatter
from tflq.engine.kernels.transpose_conv.shapes import Geometry, check_operands, shapes_of_own_batch
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.contract import Contraction, accumulators_int32
from tflq.engine.numerics.dynamic_range_float32 import Rescale, quantize_rows_float32
from tflq.typing import Array

_SAME = 0  # of the schema's paddings


def takes(node: Node) -> bool:
    """Return whether weights and bias are constant and the filter fits."""
    w, x, bias, y = node.input(1), node.input(2), node.optional(3), node.outputs[0]
    return (
        is_quantized(x)
        and is_quantized(y)
        and has_filter_scales(w, 0)
        and w.is_constant
        and (bias is None or (has_bias_scales(bias) and bias.is_constant and has_shape(bias, 1, 1)))
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_recorded_image(node)
        and filter_fits(node)
    )


def filter_fits(node: Node) -> bool:
    """Return whether steps or output leave room for the filter. Source: CalculateTransposeConvPaddings."""
    w, out_shape = node.input(1), [int(n) for n in node.constant(0).reshape(-1)]
    if len(out_shape) != 4:
        return False
    if int(node.options["padding"]) == _SAME:
        return w.shape[1] >= int(node.options["stride_h"]) and w.shape[2] >= int(node.options["stride_w"])
    return w.shape[1] <= out_shape[1] and w.shape[2] <= out_shape[2]


def spread(node: Node) -> tuple[Window, Shape]:
    """Return window and shape of the output: of VALID padding as many pixels as the input's steps reach.

    Source: CalculateTransposeConvPaddings, XNNPACK deconvolution-nhwc.c xnn_compute_deconvolution_output_dimension.
    """
    w, x = node.input(1), node.input(2)
    target = [int(n) for n in node.constant(0).reshape(-1)]
    if int(node.options["padding"]) == _SAME or len(target) != 4 or target[3] != w.shape[0]:
        return shapes_of_own_batch(node)
    check_operands(node)
    height, width = (
        (x.shape[axis] - 1) * stride + w.shape[axis] + (target[axis] - w.shape[axis]) % stride
        for axis, stride in ((1, int(node.options["stride_h"])), (2, int(node.options["stride_w"])))
    )
    shape = (x.shape[0], height, width, w.shape[0])
    return window(node, shape, (w.shape[1], w.shape[2])), shape


def prepare_earlier(node: Node, arithmetic: Arithmetic, geometry: Geometry = shapes_of_own_batch) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    w, x = node.input(1), node.input(2)
    prepared = prepare_quantized(with_fitting_bias(node, 2, 1, 3), arithmetic, geometry)
    return rescaled(node, prepared, gemm(arithmetic, x, w), x, w, w.shape[0])


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with the input's size."""
    return prepare_earlier(node, arithmetic, spread)


BYTES = tuple(
    delegate(Kernel("TRANSPOSE_CONV", types, prepare, (1, 5), (0,)), takes)
    for types in ("int32 uint8 uint8 int32? -> uint8", "int32 int8 int8 int32? -> int8")
)


def takes_one_scale(node: Node) -> bool:
    """Return whether weights have one scale and later releases take the node."""
    return is_quantized(node.input(1)) and takes(node)


EARLIER = tuple(replace(row, prepare=prepare_earlier, takes=takes_one_scale) for row in BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    spread: Contraction  # (C, KH * KW * O)
    scale: Array  # of the filters, one each, float32
    rescale: Rescale
    clamp: NumberClamp


def takes_hybrid(node: Node) -> bool:
    """Return whether filters are constant, per tensor or along the output channels, and the bias constant."""
    w, x, bias = node.input(1), node.input(2), node.optional(3)
    return (
        has_filter_scales(w, 0)
        and w.is_constant
        and (bias is None or (is_static(bias) and has_shape(bias, 1, 1)))
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_recorded_image(node)
        and filter_fits(node)
    )


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without the weights' zero points."""
    at, shape = spread(node)
    w = node.input(1)
    assert w.quantization is not None  # takes saw to both
    assert w.value is not None
    matrix = w.value.transpose(3, 1, 2, 0).reshape(w.shape[3], -1).astype(np.int16)
    data = HybridData(
        window=at,
        shape=shape,
        spread=Contraction.of(matrix, (-255, 255)),
        scale=np.broadcast_to(w.quantization.scale, shape[3]),
        rescale=arithmetic.xnnpack_rescale,
        clamp=float_range(node),
    )
    return Prepared((shape,), data, eval_hybrid)


def eval_hybrid(data: HybridData, out_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Rounding: the sum to float32, then as `rescale`. Padding: what falls outside is dropped."""
    rows = quantize_rows_float32(np.ascontiguousarray(x).reshape(x.shape[0], -1))
    real, depth = data.spread.real, x.shape[3]
    out = np.empty(data.shape, np.float32)
    added = bias_of(bias, data.shape[3], np.float32)
    for n, codes in enumerate(rows.codes):
        centred = codes.reshape(-1, depth).astype(real) - real.type(rows.zero_point[n])
        sums = np.zeros(data.shape[1:], np.int64)
        scatter(data.spread(centred), 0, data.window, sums)
        out[n] = data.rescale(accumulators_int32(sums).astype(np.float32), rows.scale[n], data.scale, added)
    return clamp_in_place(out, *data.clamp)


_HYBRID = (
    delegate(
        Kernel("TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", prepare_hybrid, (1, 5), (0,)), takes_hybrid
    ),
)

KERNELS = (
    *valid(xnnpack("litert-1.0"), *BYTES),
    *valid(
        xnnpack(until="tflite-2.14"), *(replace(row, prepare=prepare_earlier, takes=takes_one_scale) for row in BYTES)
    ),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *_HYBRID),
    *valid(xnnpack("litert-2.1", cpu="arm64 wasm"), *promising(UNCLAIMED, _HYBRID)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _HYBRID)),
)
