"""CONV_2D: patches of the input times a filter per output channel, plus bias, clamped.

Shapes of CONV_2D, checked.

CONV_2D, hybrid: float images, quantized on the way, against narrow filters.

| operand | shape          | types             | quantization                              |
|---------|----------------|-------------------|-------------------------------------------|
| x       | N, H, W, C     | float32           | none                                      |
| w       | O, KH, KW, C/G | int8, uint8, int4 | per tensor; int8, int4: or along O        |
| bias    | O              | float32           |                                           |
| y       | N, OH, OW, O   | float32           | none                                      |

Options: padding, strides, dilations, fused activation. Every image has one scale; filters whose scales differ take the
image quantized asymmetrically, all others symmetrically. Groups need scales that differ: without them the source reads
tensors that it never made. Weights are read as int8; their zero points are not looked at.
Source: LiteRT 2.3, conv.cc Prepare, EvalHybrid, EvalHybridPerChannel; reference/conv.h HybridConvPerChannel;
optimized_ops.h HybridConv; sse_tensor_utils.cc MatrixBatchVectorMultiplyAccumulate.

| operand | shape          | types                             | quantization                                   |
|---------|----------------|-----------------------------------|------------------------------------------------|
| x       | N, H, W, C     | float32, uint8, int8, int16       | per tensor; int16: zero point 0                |
| w       | O, KH, KW, C/G | float32, uint8, int8, int4, int16 | per tensor; signed: or along O, zero point 0   |
| bias    | O              | float32, int32, int64             | zero point 0                                   |
| y       | N, OH, OW, O   | as x                              | per tensor; int16: zero point 0                |

Options: padding, strides, dilations, fused activation, quantized_bias_type (16-bit activations). G, the number of
groups, follows from the shapes. int16 weights are read as int8, byte by byte, as the source does. Up to LiteRT 1.0,
packed weights are refused. Hybrid results up to 2.14 are not claimed, and those up to 2.5 are refused: 2.5.3 was seen
to give results that have nothing in common with those of later releases. Source: LiteRT 2.3, conv.cc Prepare;
reference/conv.h Conv; reference/integer_ops/conv.h ConvPerChannel.

CONV_2D of 16-bit activations with a 32-bit bias in TensorFlow Lite Micro: the accumulator has 32 bits, too.

Operands and options as in the reference kernel; quantized_bias_type is ignored. CMSIS-NN gets no scratch buffer for
these models and writes nothing: refused.
Source: tflite-micro (October 2026), conv.cc ConvEval. tflite-micro (August 2026), cmsis_nn/conv.cc Prepare asks for a
buffer only if the bias has 64 bits or is absent; CMSIS-NN 99f736a, arm_convolve_s16 returns an error without one, which
a release build ignores.

CONV_2D of the optimized resolver.

The sums are the reference's, and so are grouped convolutions. ruy's matrix product scales int8, uint8 after 2.14
(gemmlowp before it rounds as the reference does) and 16-bit activations with 32-bit accumulators. On AArch64, and with
the NEON code through SSE up to 2.12, products of one column have the matrix-vector kernel; up to 2.14 gemmlowp makes
the others on AArch64, up to 2.12 those of uint8. Eigen multiplies float32; up to 2.14 one pixel of one filter goes
through two accumulators. Hybrid filters of different scales: both scales are multiplied first.
Source: LiteRT 2.3 conv.cc EvalQuantizedPerChannel, EvalQuantized, EvalQuantizedPerChannel16x8, EvalFloat,
EvalHybridPerChannel; optimized/integer_ops/conv.h ConvPerChannel; optimized_ops.h Conv, HybridConvPerChannel,
AddBiasAndEvalActivationFunction; multithreaded_conv.h EigenTensorConvFunctor; ruy kernel_avx.cc, kernel_arm64.cc,
apply_multiplier.cc. TensorFlow 2.12 and 2.14 cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.

CONV_2D of r1.15 on 8 bits: int8 ignores the fused activation, only the type's range clamps.

Everything else is as in the reference kernel; uint8 and float32 honour the activation. In the optimized kernels, one
position of one image goes through the matrix-vector kernel.
Source: TensorFlow r1.15 lite/kernels/conv.cc EvalQuantized, EvalQuantizedPerChannel; reference/integer_ops/conv.h,
optimized/integer_ops/conv.h ConvPerChannel; optimized_ops.h Conv; cpu_backend_gemm.h Gemm, with the NEON code of
AArch64 by way of SSE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tflq.engine.kernels.checks import require_rank, require_zero_point_zero
from tflq.engine.kernels.families.activation import (
    UNDEFINED_PACKED,
    as_wide_as_its_bias,
    clamp_in_place,
    float_range,
    without_activation,
)
from tflq.engine.kernels.families.contraction import (
    OperandRows,
    Output,
    Patches,
    PlainRows,
    Products,
    Scaling,
    accumulator_16x8,
    centre,
    filter_zero_point,
    gemmlowp,
    multipliers,
    output,
    products,
    require_symmetric,
    ruy,
    scalar_gemmlowp,
    stage_of,
    weights_read_as_int8,
)
from tflq.engine.kernels.families.hybrid import (
    UNCLAIMED_2_14,
    HybridSums,
    centre_images,
    channel_scales,
    quantize_images,
    read_as_int8,
)
from tflq.engine.kernels.families.ordered import OrderedProduct, finish_pixels
from tflq.engine.kernels.families.recurrent.parts import Inputs, bind
from tflq.engine.kernels.families.unary import beside_dense, unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import gemm, requantizing
from tflq.engine.kernels.geometry.volumes import Window3D, convolve
from tflq.engine.kernels.geometry.windows import Window, patches_into, window
from tflq.engine.kernels.kernel import (
    Call,
    Kernel,
    Node,
    Operand,
    Prepare,
    Prepared,
    Shape,
    by_form,
    filling,
    once_known,
    promising,
    undefined,
    valid,
)
from tflq.engine.kernels.validity import SPEC, cmsis_nn, micro, opt, tf1, tflite
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.dynamic_range import ByteMatrix, Floats
from tflq.engine.numerics.stages import StageOf
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def shapes(node: Node) -> tuple[Window, Shape, int]:
    """Return the window, the shape of the output and the number of groups, checked."""
    x, w, bias = node.input(0), node.input(1), node.input(2)
    for operand in (x, w):
        require_rank(node, operand, 4)
    node.check(min(x.shape[1:]) > 0, "empty image", x, got=x.shape)
    node.check(min(w.shape) > 0, "empty filter", w, got=w.shape)
    node.check(
        x.shape[3] % w.shape[3] == 0, "input channels", x, expected=f"a multiple of {w.shape[3]}", got=x.shape[3]
    )
    groups = x.shape[3] // w.shape[3]
    filters = w.shape[0]
    node.check(filters % groups == 0, "output channels", w, expected=f"a multiple of {groups} groups", got=filters)
    size = int(np.prod(bias.shape))
    node.check(size == filters, "bias length", bias, expected=filters, got=size)
    at = window(node, x.shape, (w.shape[1], w.shape[2]))
    return at, (x.shape[0], at.out_h, at.out_w, filters), groups


#: Bytes of patches that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants of both forms."""

    window: Window  # pixels
    shape: Shape  # of the output
    clamp: NumberClamp
    scale: Array  # of the filters: one or O, float32
    weights: Callable[[Inputs], Any]  # where scales differ: HybridSums; else a ByteMatrix


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Choose the form by the scales."""
    at, shape, group_count = shapes(node)
    w = node.input(1)
    differ = scales_differ(w)
    if group_count > 1 and not differ:
        raise UndefinedResultError(node.op, "groups whose filters all have one scale")
    scale = channel_scales(node, w, shape[3]) if differ else np.array([first_scale(w)], np.float32)

    def groups(inputs: Inputs) -> HybridSums:
        matrices = np.split(filters(inputs).T, group_count, axis=1)
        return HybridSums.of(Patches(ZeroPoint(0), at, w.shape[3]), matrices, math.prod(shape[:3]))

    def matrix(inputs: Inputs) -> ByteMatrix:
        return ByteMatrix.of(filters(inputs), scale[0], keeps_signs=shape[3] % 4 == 0)

    data = HybridData(
        window=at,
        shape=shape,
        clamp=float_range(node),
        scale=scale,
        weights=bind(node, (1,), groups) if differ else bind(node, (1,), matrix),
    )
    return Prepared((shape,), data, eval_per_channel if differ else eval_per_tensor)


def scales_differ(w: Operand) -> bool:
    """Return whether the source goes channel by channel: not for uint8, nor if all scales are equal."""
    q = w.quantization
    return q is not None and w.type != TensorType.UINT8 and bool((q.scale != q.scale[:1]).any())


def first_scale(w: Operand) -> np.float32:
    """Return the scale of all filters, the first of several."""
    q = w.quantization
    return q.scale[0] if q is not None and len(q.scale) > 1 else w.scale


def filters(inputs: Inputs) -> Array:
    """Return the filters as rows, int8."""
    w = inputs[1]
    assert w is not None
    return read_as_int8(w).reshape(w.shape[0], -1)


def eval_per_channel(data: HybridData, x: Array, w: Array, bias: Array) -> Array:
    """Source: HybridConvPerChannel. Rounding: sum to float32, times scale of the filter, times scale of the image."""
    codes, scales = centre_images(x)
    sums = pixel_sums(data, codes, (x, w, bias))
    out = np.empty(data.shape, np.float32)
    pixels, added = out.reshape(-1, data.shape[3]), np.ascontiguousarray(bias).reshape(-1)
    pixels[...] = sums
    pixels *= data.scale
    pixels *= scales[image_of(data, 0, len(pixels)), None]
    finish_pixels(pixels, added, *data.clamp)
    return out


def pixel_sums(data: HybridData, codes: Array, inputs: Inputs) -> Array:
    """Return the sums (pixels, filters) of centred codes of images times the filters, int32."""
    products: HybridSums = data.weights(inputs)
    sums = np.empty((math.prod(data.shape[:3]), data.shape[3]), np.int32)
    products.into(codes, 0, sums)
    return sums


def eval_per_tensor(data: HybridData, x: Array, w: Array, bias: Array) -> Array:
    """Source: HybridConv. Rounding: sum to float32, times the product of the scales.

    Where O is no multiple of four the sums come from the helper that loses signs of -128.
    """
    rows = quantize_images(x, asymmetric=False)
    codes, scales = rows.codes.reshape(x.shape), rows.scale * data.scale
    matrix: ByteMatrix = data.weights((x, w, bias))
    out = np.empty(data.shape, np.float32)
    flat, added = out.reshape(-1, data.shape[3]), np.ascontiguousarray(bias).reshape(-1)
    for first, patches in blocks(len(flat), matrix.shape[1], np.dtype(np.int8)):
        patches_into(codes, 0, data.window, first, 0, patches)
        block = flat[first : first + len(patches)]
        block[...] = matrix.sums(patches)
        block *= scales[image_of(data, first, len(patches)), None]
        block += np.float32(0)  # products are added to zeros: no -0 is left
        finish_pixels(block, added, *data.clamp)
    return out


def blocks(rows: int, length: int, dtype: np.dtype[Any]) -> Iterator[tuple[int, Array]]:
    """Yield (first row, room for its patches), block by block."""
    size = max(1, min(rows, _CACHE_BYTES // (length * dtype.itemsize)))
    room = np.empty((size, length), dtype)
    for first in range(0, rows, size):
        yield first, room[: min(size, rows - first)]


def image_of(data: HybridData, first: int, count: int) -> Array:
    """Return the image that each of `count` output pixels from `first` on belongs to."""
    return np.arange(first, first + count) // (data.window.out_h * data.window.out_w)


HYBRID_ROWS = (Kernel("CONV_2D", "float32 int8|uint8|int4 float32 -> float32", prepare, (1, 8)),)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    window: Window  # pixels
    shape: Shape  # of the output
    group_count: int
    input_zero_point: ZeroPoint  # LSB of input
    weight_zero_point: ZeroPoint  # LSB of weights
    output: Output
    codes: np.dtype[Any]  # of the input
    weights: Array | None  # as the file has them; None if they or the bias are not constant
    products: Products | None = field(init=False)  # of all groups, bound to all of the above

    def __post_init__(self) -> None:
        object.__setattr__(self, "products", None if self.weights is None else _bind(self, self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    window: Window  # pixels
    shape: Shape  # of the output
    group_count: int
    clamp: NumberClamp
    weights: Array  # (KH, KW, C/G, O), or empty where they are not constant
    product: OrderedProduct | None = None  # with constant weights, where tiles can make it

    def bound(self, w: Array) -> FloatData:
        """Return the constants with the weights, output channels innermost."""
        weights = channels_last(w)
        matrix, rows = weights.reshape(-1, self.shape[3]), prod(self.shape[:3])
        product = OrderedProduct.of(matrix, self.window, rows) if self.group_count == 1 and weights.size else None
        return replace(self, weights=weights, product=product)


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute multipliers: uint8 rounds the product of scales to float32, signed types stay in float64."""
    at, shape, groups = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    accumulator = np.dtype(np.int32)
    weight_zero_point = filter_zero_point(node, x, w)
    require_zero_point_zero(node, bias)
    if x.type != TensorType.UINT8:
        require_symmetric(node, w)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
        accumulator = accumulator_16x8(node, bias)
    real = multipliers(node, arithmetic, x, w, bias, y, shape[3])
    target = output(node, stage_of(arithmetic, accumulator, real), y, bias.value, shape[3], accumulator)
    data = OpData(
        window=at,
        shape=shape,
        group_count=groups,
        input_zero_point=x.zero_point,
        weight_zero_point=weight_zero_point,
        output=target,
        codes=CARRIER[x.type],
        weights=w.value if bias.value is not None else None,
    )
    return Prepared((shape,), data, eval_variable if data.weights is None else eval_quantized)


def _bind(data: OpData, w: Array) -> Products:
    """Return the products with one matrix a group, of (KH * KW * C/G, O/G) each."""
    weights = centre(weights_read_as_int8(w) if data.output.pipeline.dtype == np.int16 else w, data.weight_zero_point)
    matrix = weights.reshape(weights.shape[0], -1).T
    count = int(np.prod(data.shape[:3]))
    rows: OperandRows = Patches(data.input_zero_point, data.window, matrix.shape[0] // data.window.taps)
    if data.window.is_pointwise and data.group_count == 1:
        rows = PlainRows(data.input_zero_point, count, matrix.shape[0])
    return products(rows, np.split(matrix, data.group_count, axis=1), data.codes, count, data.output)


@filling(lambda data, *_: (data.shape, data.output.pipeline.dtype))
def eval_quantized(data: OpData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Source: ConvPerChannel, Conv (uint8). Padding: taps outside are left out. Overflow: the accumulator wraps."""
    assert data.products is not None  # bound with the weights
    return data.products.into(x, out.reshape(-1, data.shape[3]))


def eval_variable(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Bind weights or bias that another operator computed, then evaluate as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, output=target, weights=w), x, w, bias)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry, clamp and weights."""
    at, shape, groups = shapes(node)
    w = node.input(1)
    data = FloatData(at, shape, groups, float_range(node), np.zeros((0, 0, 0, 0), np.float32))
    if w.value is None:
        return Prepared((shape,), data, eval_float_variable)
    return Prepared((shape,), data.bound(w.value), eval_float)


def channels_last(w: Array) -> Array:
    """Return (O, KH, KW, C) as (KH, KW, C, O), a new array."""
    return np.array(w.transpose(1, 2, 3, 0), order="C")


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float(data: FloatData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Source: Conv (float). Rounding: product and sum apart, over ky, kx, c in order, bias last. Padding: left out."""
    image, added = np.ascontiguousarray(x), np.ascontiguousarray(bias).reshape(-1)
    if data.product is not None:
        return data.product.into(image, added, data.clamp, out.reshape(-1, data.shape[3]))
    volumes, at, filters = image[:, None], Window3D.of_image(data.window), data.shape[3] // data.group_count
    return convolve.bound(volumes, data.weights[None], added, at, filters, *data.clamp, out[:, None])


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float_variable(data: FloatData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Evaluate with weights that another operator computed."""
    return once_known(w, lambda: eval_float.bind(data.bound(w), out, x, w, bias))


_VERSIONS = (1, 8)

ROWS = (
    Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare_float, _VERSIONS),
    Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", prepare_quantized, _VERSIONS),
    Kernel("CONV_2D", "int16 int8|int4|int16 int32|int64 -> int16", prepare_quantized, _VERSIONS),
)

_PACKED = (
    Kernel("CONV_2D", "int16 int4 int32|int64 -> int16", UNDEFINED_PACKED),
    Kernel("CONV_2D", "float32 int4 float32 -> float32", UNDEFINED_PACKED),
)


UNMODELLED_HYBRID = undefined("float activations with 8-bit filters are not modelled up to release 2.5")
_REFERENCE = (
    *ROWS,
    *HYBRID_ROWS,
    *valid(tflite(until="tflite-2.14"), *_PACKED, *promising(UNCLAIMED_2_14, HYBRID_ROWS)),
    *valid(tflite("litert-1.0", "litert-1.0"), *_PACKED),
    *valid(tflite(until="tf-2.5"), *(replace(row, prepare=UNMODELLED_HYBRID) for row in HYBRID_ROWS)),
)


def prepare_optional(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a bias of zeros if there is none: 64 bits for 16-bit activations."""
    if node.optional(2) is not None:
        return prepare_quantized(node, arithmetic)
    channels, is_wide = node.input(1).shape[0], node.input(0).type == TensorType.INT16
    type_ = TensorType.INT64 if is_wide else TensorType.INT32
    node = node.with_options(quantized_bias_type=int(type_))
    zeros = Operand(-1, "", type_, (channels,), value=np.zeros(channels, CARRIER[type_]))
    bound = prepare_quantized(node.with_input(2, zeros), arithmetic)
    return replace(bound, data=Unbiased(bound), eval=eval_unbiased)


def prepare_float_optional(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a bias of zeros if there is none."""
    if node.optional(2) is not None:
        return prepare_float(node, arithmetic)
    channels = node.input(1).shape[0]
    zeros = Operand(-1, "", TensorType.FLOAT32, (channels,), value=np.zeros(channels, np.float32))
    bound = prepare_float(node.with_input(2, zeros), arithmetic)
    return replace(bound, data=Unbiased(bound), eval=eval_unbiased)


@dataclass(frozen=True, slots=True, eq=False)
class Unbiased:
    """A convolution that was prepared with a bias of zeros."""

    inner: Prepared


def eval_unbiased(data: Unbiased, x: Array, w: Array, bias: None = None) -> Array | tuple[Array, ...]:
    """Convolve without a bias."""
    return data.inner.eval(data.inner.data, x, w, np.zeros(w.shape[0], x.dtype))


UNDEFINED_BIAS = undefined("16-bit activations with a 32-bit bias get no scratch buffer")
_MICRO = (
    *valid(
        micro(),
        Kernel("CONV_2D", "int8 int8|int4 int32? -> int8", prepare_optional, (1, 8)),
        Kernel("CONV_2D", "int16 int8 int64? -> int16", prepare_optional, (1, 8)),
        Kernel("CONV_2D", "float32 float32 float32? -> float32", prepare_float_optional, (1, 8)),
    ),
    *valid(micro(SPEC), Kernel("CONV_2D", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 8))),
    *valid(cmsis_nn(), Kernel("CONV_2D", "int16 int8 int32 -> int16", UNDEFINED_BIAS, (1, 8))),
)


def multiply(scaling: Callable[[Arithmetic], StageOf]) -> Prepare:
    """Return a prepare whose sums are scaled by `scaling`, except for grouped convolutions."""
    otherwise = requantizing(prepare_quantized, scaling)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        is_grouped = node.input(0).shape[-1:] != node.input(1).shape[-1:]
        return (prepare_quantized if is_grouped else otherwise)(node, arithmetic)

    return prepare


#: Columns, rows and, by name, `cache`: see eigen.product.
Product = Callable[..., Floats]
#: One row times one column, up to 2.14: two accumulators, not four.
_BY_COEFFICIENTS = partial(eigen.product, dot=eigen.coefficients)
#: Patches held at a time: a multiple of the four rows that Eigen takes together, so that parts equal the whole.
BLOCK = 4096


def prepare_by_eigen(node: Node, arithmetic: Arithmetic, product_of: Product = eigen.product) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    prepared = prepare_float(node, arithmetic)
    data: FloatData = prepared.data
    if data.group_count > 1 or 0 in data.shape:
        return prepared
    if node.input(1).is_constant:
        columns, rows = data.weights.reshape(-1, data.shape[3]), prod(data.shape[:3])
        block = eigen.ordered_block(*columns.shape, rows, arithmetic.first_level_cache)
        product = OrderedProduct.of(columns, data.window, rows, block) if block else None
        if product is not None:
            return Prepared(prepared.shapes, replace(data, product=product), eval_float)
    evaluation = eval_by_eigen if node.input(1).is_constant else eval_variable_optimized
    bound = partial(evaluation, cache=arithmetic.first_level_cache, product_of=product_of)
    return Prepared(prepared.shapes, data, bound)


def eval_by_eigen(data: FloatData, x: Array, w: Array, bias: Array, *, cache: int, product_of: Product) -> Array:
    """Rounding: product and sum apart, in Eigen's order of k, bias last. Padding: products with 0."""
    out = np.empty(data.shape, np.float32)
    pixels = out.reshape(-1, data.shape[3])
    columns = data.weights.reshape(-1, data.shape[3])
    image, added = np.ascontiguousarray(x), bias.reshape(-1)
    for part in parts(len(pixels)):
        patches = np.empty((part.stop - part.start, len(columns)), np.float32)
        patches_into(image, 0, data.window, part.start, 0, patches)
        np.add(product_of(columns, patches, cache=cache), added, out=pixels[part])
    return clamp_in_place(out, *data.clamp)


def parts(rows: int) -> Iterator[slice]:
    """Yield blocks of rows; the last one includes the rest, which is no small product of its own."""
    whole = max(rows // BLOCK, 1)
    for block in range(whole):
        yield slice(block * BLOCK, (block + 1) * BLOCK if block < whole - 1 else rows)


def eval_variable_optimized(
    data: FloatData, x: Array, w: Array, bias: Array, *, cache: int, product_of: Product
) -> Array:
    """Evaluate with weights that another operator computed."""
    return eval_by_eigen(replace(data, weights=channels_last(w)), x, w, bias, cache=cache, product_of=product_of)


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    prepared = prepare(node, arithmetic)
    w = node.input(1)
    is_ours = scales_differ(w) and node.input(0).shape[3] == w.shape[3]
    return Prepared(prepared.shapes, prepared.data, eval_per_channel_optimized) if is_ours else prepared


def eval_per_channel_optimized(data: HybridData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: sum to float32, times the product of the scales, then bias."""
    codes, scales = centre_images(x)
    sums = pixel_sums(data, codes, (x, w, bias))
    out = sums.astype(np.float32)
    out *= scales[image_of(data, 0, len(out)), None] * data.scale
    out += bias.reshape(-1)
    out = out.reshape(data.shape)
    return clamp_in_place(out, *data.clamp)


def by(scaling: Scaling) -> Prepare:
    """Return a prepare of the reference's convolution with a scaling that depends on the product's shape."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        _, shape, groups = shapes(node)
        if groups > 1:
            return prepare_quantized(node, arithmetic)
        stage = scaling(arithmetic, shape[3], prod(node.input(1).shape[1:]), prod(shape[:3]))
        return prepare_quantized(node, replace(arithmetic, requantize=stage))

    return prepare


by_ruy, by_gemmlowp = by(ruy), by(gemmlowp)
_prepare_gemm = multiply(gemm)
_THROUGH_SSE = opt(until="tflite-2.12", cpu="x86-64", vectors=True)
_OPTIMIZED = (
    *valid(opt(), *unclaimed_floats(beside_dense(ROWS))),
    *by_form(
        "CONV_2D",
        8,
        {
            "int8 int8|int4 int32 -> int8": {
                opt(): _prepare_gemm,
                opt("litert-1.0", cpu="arm64"): by_ruy,
                opt(until="tflite-2.14", cpu="arm64"): by_gemmlowp,
                _THROUGH_SSE: by_ruy,
            },
            "float32 float32 float32 -> float32": {
                opt(): prepare_by_eigen,
                opt(until="tflite-2.14"): partial(prepare_by_eigen, product_of=_BY_COEFFICIENTS),
            },
            "uint8 uint8 int32 -> uint8": {
                opt("litert-1.0"): _prepare_gemm,
                opt("litert-1.0", cpu="arm64"): by_ruy,
                opt(until="tflite-2.14", cpu="x86-64"): by(scalar_gemmlowp),
                opt(until="tflite-2.14", cpu="arm64"): by_gemmlowp,
                _THROUGH_SSE: by_gemmlowp,
            },
            "int16 int8|int4|int16 int32|int64 -> int16": {opt("litert-1.0"): _prepare_gemm},
            "float32 int8|uint8|int4 float32 -> float32": {opt("litert-1.0"): prepare_hybrid},
        },
    ),
)


_TF1 = (
    *valid(tf1(), Kernel("CONV_2D", "int8 int8 int32 -> int8", without_activation(prepare_quantized), (1, 3))),
    *valid(
        tf1("opt"),
        Kernel("CONV_2D", "int8 int8 int32 -> int8", without_activation(by(gemmlowp)), (1, 3)),
        Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", by(gemmlowp), (1, 3)),
    ),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1)
