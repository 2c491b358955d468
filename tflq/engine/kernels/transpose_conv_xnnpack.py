"""TRANSPOSE_CONV by XNNPACK. Operands, options and refusals: kernels/transpose_conv.py, hybrid.py.

8-bit codes: the reference's sums, scaled by a float32 multiplier. Up to 2.14, weights with a scale for each channel are
not taken. Floats and int8 filters: images quantized asymmetrically.

VALID padding, from LiteRT 1.0 on: the input's size decides the output's, and the shape operand only how many pixels the
last step leaves. The other kernels refuse a shape operand that does not belong to the input, and so does XNNPACK with
SAME padding; in tflite-runtime it lets XNNPACK write beyond the output.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitTransposeConvNode, CalculateTransposeConvPaddings; XNNPACK's
deconvolution2d_nhwc_qd8_f32_qc8w. TensorFlow 2.12 xnnpack_delegate.cc VisitTransposeConvNode.

TRANSPOSE_CONV of float32 by XNNPACK. Operands and options: tflq/engine/kernels/transpose_conv.py.

Convolution2DTransposeBias of MediaPipe is the same operator: x, w, bias -> y. Its options are a C structure of padding
and strides (W, H); the shape is the one that the file records of y. XNNPACK's delegate alone has it.

Each output pixel is a chain of fused multiply-adds from the bias on, over those taps (ky, kx, c in order) that meet an
input pixel: output pixels at the same place between steps meet the same taps, and are one matrix product.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitTransposeConvNode, VisitMediaPipeDeconvolutionNode; XNNPACK's
deconvolution2d_nhwc_f32, subconvolutions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.engine.kernels.delegation import (
    BIAS_OF_CODES,
    BIAS_OF_FLOATS,
    RECORDED_IMAGE,
    UNCLAIMED,
    delegate,
    is_in_file,
    is_quantized,
    is_static,
    meeting,
    needs,
    ranked,
    result,
    scaled_along,
)
from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.families.custom_options import SAME, VALID, integers
from tflq.engine.kernels.families.ordered import FusedProduct, open_range
from tflq.engine.kernels.families.xnnpack import gemm, rescaled, with_fitting_bias
from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import (
    Call,
    Kernel,
    Node,
    Operand,
    Prepared,
    Shape,
    filling,
    in_turn,
    once_known,
    promising,
    valid,
)
from tflq.engine.kernels.transpose_conv import (
    Geometry,
    check_operands,
    prepare_quantized,
    scattering,
    shapes_of_own_batch,
)
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.dynamic_range import Rescale, quantize_rows_float32
from tflq.engine.numerics.products import Contraction, accumulators_int32
from tflq.model.ir import Record, TensorType
from tflq.typing import Array

_SAME = 0  # of the schema's paddings


def filter_fits(node: Node) -> bool:
    """Return whether steps or output leave room for the filter. Source: CalculateTransposeConvPaddings."""
    w, out_shape = node.input(1), [int(n) for n in node.constant(0).reshape(-1)]
    if len(out_shape) != 4:
        return False
    if int(node.options["padding"]) == _SAME:
        return w.shape[1] >= int(node.options["stride_h"]) and w.shape[2] >= int(node.options["stride_w"])
    return w.shape[1] <= out_shape[1] and w.shape[2] <= out_shape[2]


@meeting(
    needs(1, scaled_along(0), is_in_file, ranked(4)),
    needs(2, is_quantized, ranked(4)),
    needs(3, *BIAS_OF_CODES),
    result(is_quantized),
    RECORDED_IMAGE,
)
def takes(node: Node) -> bool:
    """Return whether weights and bias are constant and the filter fits."""
    return filter_fits(node)


@meeting(needs(1, is_quantized))
def takes_one_scale(node: Node) -> bool:
    """Return whether weights have one scale and later releases take the node."""
    return takes(node)


@meeting(
    needs(1, scaled_along(0), is_in_file, ranked(4)), needs(2, ranked(4)), needs(3, *BIAS_OF_FLOATS), RECORDED_IMAGE
)
def takes_hybrid(node: Node) -> bool:
    """Return whether filters are constant, per tensor or along the output channels, and the bias constant."""
    return filter_fits(node)


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
        scattering()(data.spread(centred), 0, data.window, sums)
        out[n] = data.rescale(accumulators_int32(sums).astype(np.float32), rows.scale[n], data.scale, added)
    return clamp_in_place(out, *data.clamp)


_HYBRID = (
    delegate(
        Kernel("TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", prepare_hybrid, (1, 5), (0,)), takes_hybrid
    ),
)

_XNNPACK = (
    *valid(xnnpack("litert-1.0"), *BYTES),
    *valid(xnnpack(until="tflite-2.14"), *EARLIER),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *_HYBRID),
    *valid(xnnpack("litert-2.1", cpu="arm64 wasm"), *promising(UNCLAIMED, _HYBRID)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _HYBRID)),
)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    window: Window  # of the convolution that is transposed: its image is the output here, pixels
    shape: Shape  # of the output
    clamp: NumberClamp
    filters: Array | None  # None if they are computed


@meeting(needs(1, is_static, ranked(4)), needs(2, ranked(4)), needs(3, *BIAS_OF_FLOATS), RECORDED_IMAGE)
def takes_xnnpack_floats(node: Node) -> bool:
    """Return whether filter and bias are constant and the filter fits."""
    return filter_fits(node)


def prepare_xnnpack_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    at, shape = spread(node)
    return Prepared((shape,), OpData(at, shape, open_range(node), node.input(1).value), evaluate)


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate(data: OpData, out: Array, out_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Call:
    """Rounding: one for each product and sum, from the bias on. Padding: products with 0."""
    if data.filters is None:
        return once_known(w, lambda: evaluate.bind(replace(data, filters=w), out, out_shape, w, x, bias))
    at, (count, height, width, depth) = data.window, x.shape
    pixels = np.zeros((count * height * width + 1, depth), np.float32)  # the last one lies outside
    calls: list[Call] = [partial(np.copyto, pixels[:-1].reshape(x.shape), x)]
    for first_y in range(min(at.stride_h, data.shape[1])):
        for first_x in range(min(at.stride_w, data.shape[2])):
            part = out[:, first_y :: at.stride_h, first_x :: at.stride_w]
            rows = _met(first_y, part.shape[1], at.stride_h, at.pad_top, at.kernel_h)
            columns = _met(first_x, part.shape[2], at.stride_w, at.pad_left, at.kernel_w)
            calls += _multiply_part(data, data.filters, pixels, x.shape, bias, rows, columns, part)
    return in_turn(calls)


def _met(first: int, count: int, stride: int, before: int, kernel: int) -> tuple[Array, Array]:
    """Return the taps that positions `first`, `first + stride` ... meet, and the input's position (positions, taps)."""
    taps = np.arange((first + before) % stride, kernel, stride)
    start = (first + before - taps) // stride
    return taps, start + np.arange(count)[:, None]


def _multiply_part(
    data: OpData,
    w: Array,
    pixels: Array,
    shape: Shape,
    bias: Array | None,
    rows: tuple[Array, Array],
    columns: tuple[Array, Array],
    part: Array,
) -> list[Call]:
    """Return the calls that fill the pixels of the output that meet these taps."""
    (taps_y, ys), (taps_x, xs) = rows, columns
    count, height, width, depth = shape
    added = bias_of(bias, len(w), np.float32)
    if not len(taps_y) or not len(taps_x):
        return [lambda: np.copyto(part, np.clip(added, *data.clamp))]
    is_inside = ((ys >= 0) & (ys < height))[:, None, :, None] & ((xs >= 0) & (xs < width))[None, :, None, :]
    flat = ys[:, None, :, None] * width + xs[None, :, None, :]
    images = np.arange(count)[:, None, None, None, None] * (height * width)
    places = np.where(is_inside, flat + images, len(pixels) - 1)
    taps = len(taps_y) * len(taps_x)
    places, made = places.reshape(-1, taps), np.empty(part.shape, np.float32)
    patches = np.empty((len(places), taps, depth), np.float32)
    matrix = w[:, taps_y][:, :, taps_x].reshape(len(w), -1).T
    multiply = FusedProduct.of_rows(matrix, len(places)).into(
        patches.reshape(1, 1, len(places), -1), added, data.clamp, made.reshape(-1, len(w))
    )
    return [partial(np.take, pixels, places, 0, patches, "clip"), multiply, partial(np.copyto, part, made)]


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


def has_known_options(node: Node) -> bool:
    """Return whether the options are those of TRANSPOSE_CONV."""
    options = integers(node, _MEMBERS)
    return options["padding"] in _PADDINGS and min(options["stride_h"], options["stride_w"]) > 0


@meeting(has_known_options, needs(0, ranked(4, 4)), needs(1, ranked(4, 4)), RECORDED_IMAGE)
def takes_custom(node: Node) -> bool:
    """Return whether the node is taken as TRANSPOSE_CONV."""
    return takes_xnnpack_floats(as_transpose_conv(node))


def prepare_custom(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare as TRANSPOSE_CONV."""
    return replace(prepare_xnnpack_floats(as_transpose_conv(node), arithmetic), eval=eval_custom)


@filling(lambda data, *_: (data.shape, np.float32))
def eval_custom(data: OpData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Evaluate as TRANSPOSE_CONV, whose order of operands is another."""
    return evaluate.bind(data, out, np.zeros(0, np.int32), w, x, bias)


_CUSTOM = (
    delegate(Kernel("Convolution2DTransposeBias", "float32 float32 float32 -> float32", prepare_custom), takes_custom),
)

_XNNPACK_FLOATS = (
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        delegate(
            Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_xnnpack_floats, (1, 5), (0,)),
            takes_xnnpack_floats,
        ),
        *_CUSTOM,
    ),
    *valid(xnnpack("litert-2.1", cpu="arm64 wasm"), *promising(UNCLAIMED, _CUSTOM)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _CUSTOM)),
)

#: The rows of all operators above.
KERNELS = (*_XNNPACK, *_XNNPACK_FLOATS)
