"""TRANSPOSE_CONV: every input pixel spread over the output through the filter, plus bias, clamped.

Shapes of TRANSPOSE_CONV, checked.

TRANSPOSE_CONV, hybrid: float images, quantized on the way, spread through int8 filters.

| operand | shape        | types   | quantization             |
|---------|--------------|---------|--------------------------|
| shape   | 4            | int32   | none; it may be computed |
| w       | O, KH, KW, C | int8    | per tensor or along O    |
| x       | N, H, W, C   | float32 | none                     |
| bias    | O, optional  | float32 |                          |
| y       | N, OH, OW, O | float32 | none                     |

Options: padding, strides, fused activation. Every image is quantized asymmetrically with one scale. Weight zero points
are not looked at.
Source: LiteRT 2.3, transpose_conv.cc Prepare, EvalHybrid; reference/transpose_conv.h HybridTransposeConv.

| operand | shape          | types                       | quantization                                       |
|---------|----------------|-----------------------------|----------------------------------------------------|
| shape   | 4              | int32                       | none; it may be computed                           |
| w       | O, KH, KW, C   | float32, uint8, int8        | uint8: per tensor; else per tensor or along O      |
| x       | N, H, W, C     | float32, uint8, int8, int16 | per tensor; int16: zero point 0                    |
| bias    | O, optional    | float32, int32, int64       | zero point 0 (signed types)                        |
| y       | N, OH, OW, O   | as x                        | per tensor; int16: zero point 0                    |

Options: padding, strides, fused activation (clamps the quantized and the float form), quantized_bias_type (16-bit
activations). The signed forms ignore a weight zero point. 16-bit activations up to 2.14: the bias alone decides how
wide the accumulator is, 32 bits if there is none; up to 2.7 it has 64 bits. Up to 2.11, a fused activation is
ignored. Source: LiteRT 2.3, transpose_conv.cc Prepare, Eval; reference/transpose_conv.h TransposeConv;
reference/integer_ops/transpose_conv.h TransposeConv. TensorFlow 2.8 to 2.14, transpose_conv.cc Eval,
EvalQuantizedPerChannel16x8.

TRANSPOSE_CONV of TensorFlow Lite Micro: the output has the declared shape; the shape operand is ignored.

| operand | shape          | types                | quantization                             |
|---------|----------------|----------------------|------------------------------------------|
| shape   | 4              | int32                | none; it is not read                     |
| w       | O, KH, KW, C   | float32, int8        | per tensor or along O                    |
| x       | N, H, W, C     | float32, int8, int16 | per tensor; int16: zero point 0          |
| bias    | O, optional    | float32, int32, int64 | zero point 0                            |
| y       | N, OH, OW, P   | as x                 | per tensor; int16: zero point 0          |

P is at most O: what falls outside the declared height, width and channels is dropped.
Source: tflite-micro (October 2026), transpose_conv.cc TransposeConvPrepare, TransposeConvEval. tflite-micro (August
2026), cmsis_nn/transpose_conv.cc CalculateOpData limits codes by their type only: a fused activation is ignored.

TRANSPOSE_CONV: the reference's sums; vector code scales eight channels or, for uint8, sixteen elements at a time.

16-bit activations with 64-bit accumulators are the reference's. AArch64 up to 2.14 and x86-64 up to 2.12 have the
same code for 8 bits. Up to 2.5 there are no fused activations, and accumulators of 16-bit activations have 64 bits.
In 2.3, one weight scale gives only the first output channel of int8 its multiplier; the others read what memory
holds: refused. Source: LiteRT 2.3 optimized/integer_ops/transpose_conv.h TransposeConvV2 (int8, int16);
optimized_ops.h TransposeConvV2, Quantize (uint8): one run over all images. TensorFlow 2.12 and 2.14, the same files.
TensorFlow 2.3 and 2.5, transpose_conv.cc Prepare, Eval, EvalQuantizedPerChannel16x8; kernel_util.cc
PopulateConvolutionQuantizationParams.

TRANSPOSE_CONV of float32 by the optimized resolver, on x86-64: Eigen multiplies pixels by the filter, then parts are
added where their taps fall.

Source: LiteRT 2.3 optimized_ops.h TransposeConvV2 (float), Col2im, BiasAdd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled
from tflq.engine.jit.pieces import InPieces, in_pieces
from tflq.engine.kernels.checks import require_rank, require_zero_point_zero
from tflq.engine.kernels.families.activation import clamp_in_place, float_range, without_activation
from tflq.engine.kernels.families.contraction import (
    Output,
    accumulator_16x8,
    bias_of,
    centre,
    code_span,
    filter_zero_point,
    multipliers,
    output,
    require_quantized,
    stage_of,
)
from tflq.engine.kernels.families.hybrid import centre_images, channel_scales
from tflq.engine.kernels.families.ordered import finish_pixels
from tflq.engine.kernels.families.unary import unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import FlatBlocks, eight_channels, requantizing
from tflq.engine.kernels.geometry.volumes import Window3D, scaled_product, spread_floats, spreading
from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepare, Prepared, Shape, of_types, undefined, valid
from tflq.engine.kernels.validity import cmsis_nn, micro, opt, tflite
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.products import Contraction, Range, centre_into
from tflq.engine.numerics.stage_roundings import Unscaled
from tflq.engine.numerics.stages import OutputPipeline
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

_STEPS = (1, 2**15 - 1)


def shapes(node: Node) -> tuple[Window, Shape]:
    """Return the window of the convolution that is transposed and the shape of the output, checked."""
    check_operands(node)
    return _fit(node, tuple(int(n) for n in node.constant(0)))


def shapes_of_own_batch(node: Node) -> tuple[Window, Shape]:
    """Return the same; the batch is the input's, and that of the announced shape is not read.

    Source: XNNPACK's delegate, VisitTransposeConvNode.
    """
    check_operands(node)
    return _fit(node, (*node.input(2).shape[:1], *(int(n) for n in node.constant(0)[1:])))


def _fit(node: Node, shape: Shape) -> tuple[Window, Shape]:
    """Return window and shape of the output, if the operands fit that shape."""
    target, w, x = node.input(0), node.input(1), node.input(2)
    fits = len(shape) == 4 and shape[0] == x.shape[0] and shape[3] == w.shape[0] and min(shape[1:3], default=0) > 0
    node.check(fits, "output shape", target, expected=f"({x.shape[0]}, OH, OW, {w.shape[0]})", got=shape)
    at = window(node, shape, (w.shape[1], w.shape[2]))
    node.check((at.out_h, at.out_w) == x.shape[1:3], "image size", x, expected=(at.out_h, at.out_w), got=x.shape[1:3])
    return at, shape


def check_operands(node: Node) -> None:
    """Refuse operands whose shapes do not go together, and steps out of range."""
    output_shape, w, x = node.input(0), node.input(1), node.input(2)
    require_rank(node, output_shape, 1)
    for operand in (x, w):
        require_rank(node, operand, 4)
    node.check(min(x.shape[1:]) > 0, "empty image", x, got=x.shape)
    node.check(min(w.shape[:3]) > 0, "empty filter", w, got=w.shape)
    node.check(x.shape[3] == w.shape[3], "input channels", x, expected=w.shape[3], got=x.shape[3])
    for name in ("stride_h", "stride_w"):
        step = int(node.options[name])
        node.check(_STEPS[0] <= step <= _STEPS[1], name, expected=_STEPS, got=step)
    bias = node.optional(3)
    if bias is not None:
        size = int(np.prod(bias.shape))
        node.check(size == w.shape[0], "bias length", bias, expected=w.shape[0], got=size)


#: Window and output shape of a node
Geometry = Callable[[Node], tuple[Window, Shape]]


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    scale: Array  # of the filters, one a channel, float32
    clamp: NumberClamp


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Repeat one scale along the quantized dimension."""
    at, shape = shapes(node)
    w = node.input(1)
    node.check(shape[0] > 0, "no images", node.input(2))
    require_quantized(node, w)
    return Prepared((shape,), HybridData(at, shape, scales(node, w, shape[3]), float_range(node)), evaluate)


def prepare_by_channel(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse one scale for several channels. Source: LiteRT 1.0 transpose_conv.cc Prepare."""
    w = node.input(1)
    require_quantized(node, w)
    q = w.quantization
    assert q is not None  # require_quantized saw to it
    size = w.shape[q.quantized_dimension]
    node.check(len(q.scale) == size, "number of scales", w, expected=size, got=len(q.scale))
    return prepare(node, arithmetic)


def scales(node: Node, w: Operand, channels: int) -> Array:
    """Return one scale a channel."""
    q = w.quantization
    assert q is not None  # require_quantized saw to it
    if len(q.scale) > 1 or w.shape[q.quantized_dimension] == 1:
        return channel_scales(node, w, channels)
    if w.shape[q.quantized_dimension] < channels:
        raise UndefinedResultError(node.op, f"a scale repeated {w.shape[q.quantized_dimension]} times for {channels}")
    return np.full(channels, w.scale, np.float32)


def evaluate(data: HybridData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: HybridTransposeConv. Rounding: every product to float32, times both scales in turn, added in order."""
    codes, image_scales = centre_images(x)
    out = np.zeros(data.shape, np.float32)
    weights = np.array(w.transpose(1, 2, 3, 0), order="C")
    added = bias_of(bias, data.shape[3], np.float32)
    window = Window3D.of_image(data.window)
    spreading(scaled_product)(codes[:, None], weights[None], data.scale, image_scales, window, out[:, None])
    finish_pixels(out.reshape(-1, data.shape[3]), added, *data.clamp)
    return out


HYBRID_ROWS = (Kernel("TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", prepare, (1, 5), (0,)),)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    input_zero_point: ZeroPoint  # LSB of input
    weight_zero_point: ZeroPoint  # LSB of weights
    span: Range  # of centred input values
    output: Output
    spread: Contraction | None  # (C, KH * KW * O); None if the weights are not constant


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    window: Window  # as in OpData
    shape: Shape  # of the output
    clamp: NumberClamp


def prepare_quantized(node: Node, arithmetic: Arithmetic, geometry: Geometry = shapes) -> Prepared:
    """Compute multipliers: uint8 rounds the product of scales to float32, signed types stay in float64."""
    at, shape = geometry(node)
    w, x, bias, y = node.input(1), node.input(2), node.optional(3), node.outputs[0]
    accumulator = np.dtype(np.int32)
    weight_zero_point = filter_zero_point(node, x, w)
    if x.type != TensorType.UINT8:
        require_zero_point_zero(node, bias)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
        accumulator = accumulator_16x8(node, bias)
    stage = stage_of(arithmetic, accumulator, multipliers(node, arithmetic, x, w, bias, y, shape[3]))
    data = OpData(
        window=at,
        shape=shape,
        input_zero_point=x.zero_point,
        weight_zero_point=weight_zero_point,
        span=code_span(x),
        output=output(node, stage, y, None if bias is None else bias.value, shape[3], accumulator),
        spread=None,
    )
    scratch = prod(shape[1:]) * accumulator.itemsize  # sums of one image
    if w.value is None or (bias is not None and bias.value is None):
        return Prepared((shape,), data, eval_variable, scratch=scratch)
    bound = replace(data, spread=contraction(data, w.value))
    return Prepared((shape,), bound, eval_quantized, scratch=scratch)


def contraction(data: OpData, w: Array) -> Contraction:
    """Return the weights (O, KH, KW, C), centred, as a matrix (C, KH * KW * O)."""
    codes = centre(w, data.weight_zero_point)
    return Contraction.of(codes.transpose(3, 1, 2, 0).reshape(w.shape[3], -1), data.span)


def eval_quantized(data: OpData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: TransposeConv. Padding: what falls outside is dropped. Overflow: the accumulator wraps."""
    spread, at, channels = data.spread, data.window, data.shape[3]
    assert spread is not None  # bound by prepare or by eval_variable
    pixels, depth = at.out_h * at.out_w, x.shape[3]
    block = max(1, min(pixels, spread.block_rows))
    rows = np.empty((block, depth), spread.real)
    parts = np.empty((block, spread.shape[1]), spread.accumulator)
    sums = np.empty((at.height, at.width, channels), data.output.bias.dtype)
    out = np.empty(data.shape, data.output.pipeline.dtype)
    codes = np.ascontiguousarray(x).reshape(x.shape[0], -1)
    for n in range(x.shape[0]):
        sums.fill(0)
        for start in range(0, pixels, block):
            count = min(block, pixels - start)
            centre_into(
                codes[n, start * depth : (start + count) * depth], int(data.input_zero_point), rows[:count].reshape(-1)
            )
            scattering()(spread(rows[:count], parts[:count]), start, at, sums)
        data.output.into(sums.reshape(-1, channels), out[n].reshape(-1, channels))
    return out


@compiled
def _as_int64(part: Real) -> Int:
    return np.int64(part)


@compiled
def itself(part: Real) -> Real:
    """Return a part as it is."""
    return part


#: The name that `scattering` replaces.
read: Any = None


@cache
def scattering(function: Compiled[..., Any] = _as_int64) -> InPieces:
    """Return the loop (parts, first_pixel, window, sums), which adds `function` of each part to sums."""
    return _scatter.bind(read=function)  # type: ignore[return-value]


@in_pieces(parts="r", first_pixel="r")
@compiled
def _scatter(parts: Array, first_pixel: Int, window: Window, sums: Array) -> None:
    """Add parts[i] (taps x channels), made by input pixel first_pixel + i, where its taps fall. Sums wrap.

    Prepare guarantees: `sums` is (height, width, channels) of `window`, a row of `parts` has all taps of all channels.
    """
    channels = sums.shape[2]
    for i in range(parts.shape[0]):
        pixel = first_pixel + i
        top = pixel // window.out_w * window.stride_h - window.pad_top
        left = pixel % window.out_w * window.stride_w - window.pad_left
        for y in range(max(top, 0), min(top + window.kernel_h, window.height)):
            for column in range(max(left, 0), min(left + window.kernel_w, window.width)):
                at = ((y - top) * window.kernel_w + column - left) * channels
                for c in range(channels):
                    sums[y, column, c] += read(parts[i, at + c])


def eval_variable(data: OpData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Bind weights or bias that another operator computed, then evaluate as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, spread=contraction(data, w), output=target), output_shape, w, x)


def prepare_float(node: Node, arithmetic: Arithmetic, geometry: Geometry = shapes) -> Prepared:
    """Prepare geometry and clamp."""
    at, shape = geometry(node)
    return Prepared((shape,), FloatData(at, shape, float_range(node)), eval_float)


def eval_float(data: FloatData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: TransposeConv (float). Rounding: product and sum apart, over y, x, c of the input in order, bias last."""
    out = np.zeros(data.shape, np.float32)
    weights = np.array(w.transpose(1, 2, 3, 0), order="C")
    spread_floats(np.ascontiguousarray(x)[:, None], weights[None], Window3D.of_image(data.window), out[:, None])
    finish_pixels(out.reshape(-1, data.shape[3]), bias_of(bias, data.shape[3], np.float32), *data.clamp)
    return out


def prepare_as_wide_as_bias(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare for a model that declares the type its bias has, int32 without a bias."""
    bias = node.optional(3)
    width = TensorType.INT32 if bias is None else bias.type
    return prepare_quantized(node.with_options(quantized_bias_type=int(width)), arithmetic)


def without_activations(*rows: Kernel) -> tuple[Kernel, ...]:
    """Return the rows without fused activations."""
    return tuple(replace(row, prepare=without_activation(row.prepare)) for row in rows)


_VERSIONS = (1, 5)
_INT16 = "int32 int8 int16 int32|int64? -> int16"

ROWS = (
    Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_float, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 uint8 uint8 int32? -> uint8", prepare_quantized, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", prepare_quantized, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", _INT16, prepare_quantized, _VERSIONS, (0,)),
)
#: 16-bit activations whose bias decides how wide the accumulator is.
INT16 = Kernel("TRANSPOSE_CONV", _INT16, prepare_as_wide_as_bias, _VERSIONS, (0,))
#: 16-bit activations with accumulators of 64 bits and without fused activations.
WIDE_INT16 = without_activations(of_types(ROWS, _INT16))

_REFERENCE = (
    *ROWS,
    *HYBRID_ROWS,
    *valid(tflite(until="litert-1.0"), *(replace(row, prepare=prepare_by_channel) for row in HYBRID_ROWS)),
    *valid(tflite(until="tflite-2.14"), INT16),
    *valid(tflite(until="tflite-2.11"), *without_activations(INT16, *(row for row in ROWS if row.types != _INT16))),
    *valid(tflite(until="tflite-2.7"), *WIDE_INT16),
)


@dataclass(frozen=True, slots=True, eq=False)
class MicroData:
    """The reference's constants for all channels, and how many of them the declared output holds."""

    whole: Any
    channels: int


def declare(node: Node) -> tuple[Window, Shape]:
    """Return the window over the declared output, with all channels of the filter."""
    check_operands(node)
    w, x, y = node.input(1), node.input(2), node.outputs[0]
    fits = len(y.shape) == 4 and y.shape[0] == x.shape[0] and 0 < y.shape[3] <= w.shape[0] and min(y.shape[1:3]) > 0
    node.check(fits, "declared shape", y, expected=f"({x.shape[0]}, OH, OW, up to {w.shape[0]})", got=y.shape)
    at = window(node, y.shape, (w.shape[1], w.shape[2]))
    return at._replace(out_h=x.shape[1], out_w=x.shape[2]), (*y.shape[:3], w.shape[0])


def _crop(whole: Callable[[Node, Arithmetic, Geometry], Prepared]) -> Prepare:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = whole(node, arithmetic, declare)
        shape = node.outputs[0].shape
        if prepared.shapes[0] == shape:
            return prepared
        data, evaluate = MicroData(prepared.data, shape[3]), prepared.eval

        def eval_cropped(data: MicroData, *inputs: Array | None) -> Array:
            whole_output = evaluate(data.whole, *inputs)
            assert isinstance(whole_output, np.ndarray)
            return whole_output[..., : data.channels]

        return Prepared((shape,), data, eval_cropped)

    return prepare


prepare_quantized_micro = _crop(prepare_quantized)
prepare_float_micro = _crop(prepare_float)

UNDEFINED_BIAS = undefined("16-bit activations with a 32-bit bias, which is read as 64 bits")
_INTEGERS = (
    Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", prepare_quantized_micro, (1, 5)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int16 int64? -> int16", prepare_quantized_micro, (1, 5)),
)
_FLOATS = Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_float_micro, (1, 5))
_MICRO = (
    *valid(micro(), _FLOATS),
    *valid(micro(until="litert-2.1"), *without_activations(*_INTEGERS)),
    *valid(micro(), *_INTEGERS),
    *valid(micro(), Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32 -> int16", UNDEFINED_BIAS, (1, 5))),
    *valid(cmsis_nn(), *without_activations(*_INTEGERS)),
)


#: Elements that the uint8 form's vector loop takes at a time.
BLOCK = 16


@dataclass(frozen=True, slots=True, eq=False)
class OptimizedData:
    """Constants of the uint8 form."""

    sums: Prepared  # the same operator, without scaling
    blocks: FlatBlocks
    pipeline: OutputPipeline


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the reference's operator; its accumulators are kept and scaled afterwards."""
    prepared = prepare_quantized(node, arithmetic)
    pipeline = prepared.data.output.pipeline
    w, x, bias, y = node.input(1), node.input(2), node.optional(3), node.outputs[0]
    real = multipliers(node, arithmetic, x, w, bias, y, 1)
    output = replace(prepared.data.output, pipeline=Unscaled.pipeline())
    data = OptimizedData(
        sums=replace(prepared, data=replace(prepared.data, output=output)),
        blocks=FlatBlocks(arithmetic.requantize_simd(real), arithmetic.requantize(real), BLOCK),
        pipeline=pipeline,
    )
    return replace(prepared, data=data, eval=eval_uint8)


def eval_uint8(data: OptimizedData, *operands: Array) -> Array:
    """Source: TransposeConvV2 (uint8). Rounding: by the stages. Overflow: the accumulator wraps."""
    sums = data.sums.eval(data.sums.data, *operands)
    assert isinstance(sums, np.ndarray)  # one output
    return data.blocks(sums, data.pipeline)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare weights with a zero point like the reference kernel."""
    prepare = prepare_quantized if node.input(1).zero_point else requantizing(prepare_quantized, eight_channels)
    return prepare(node, arithmetic)


OPTIMIZED_INT16 = Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32|int64? -> int16", prepare_int16, (1, 5), (0,))
_prepare_int8 = requantizing(prepare_quantized, eight_channels)
_prepare_unactivated = without_activation(_prepare_int8)
BYTES = (
    Kernel("TRANSPOSE_CONV", "int32 uint8 uint8 int32? -> uint8", prepare_uint8, (1, 5), (0,)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", _prepare_int8, (1, 5), (0,)),
)


def prepare_one_scale(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse several channels that share a scale."""
    weights = node.input(1)
    if weights.quantization is not None and len(weights.quantization.scale) == 1 and weights.shape[0] > 1:
        raise UndefinedResultError(node.op, "one weight scale for several channels: only the first gets a multiplier")
    return _prepare_unactivated(node, arithmetic)


_OPTIMIZED = (
    *valid(opt(), *unclaimed_floats(ROWS)),
    *valid(opt("litert-1.0"), OPTIMIZED_INT16, *BYTES),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *BYTES),
    *valid(
        opt(until="tflite-2.12", cpu="x86-64", vectors=True),
        *BYTES,
        replace(INT16, prepare=requantizing(INT16.prepare, eight_channels)),
    ),
    *valid(opt(until="tf-2.5", vectors=True), *without_activations(*BYTES), *WIDE_INT16),
    *valid(
        opt(until="tf-2.3", vectors=True),
        Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", prepare_one_scale, (1, 5), (0,)),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class OptimizedFloatsData:
    """Constants."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    clamp: NumberClamp
    cache: int  # bytes


def prepare_optimized_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    at, shape = shapes(node)
    data = OptimizedFloatsData(at, shape, float_range(node), arithmetic.first_level_cache)
    depth, taps = node.input(1).shape[3], at.kernel_h * at.kernel_w * shape[3]
    return Prepared((shape,), data, evaluate_optimized_floats, scratch=4 * taps * (at.out_h * at.out_w + depth))


def evaluate_optimized_floats(
    data: OptimizedFloatsData, output_shape: Array, w: Array, x: Array, bias: Array | None = None
) -> Array:
    """Rounding: product and sum apart in Eigen's order of channels, then parts in the order of pixels, bias last."""
    columns = np.array(w.transpose(3, 1, 2, 0), order="C").reshape(w.shape[3], -1)
    out = np.zeros(data.shape, np.float32)
    for image, sums in zip(np.ascontiguousarray(x), out, strict=True):
        rows = image.reshape(-1, image.shape[-1])
        scattering(itself)(eigen.product(columns, rows, cache=data.cache), 0, data.window, sums)
    if bias is not None:
        out += bias.reshape(-1)
    return clamp_in_place(out, *data.clamp)


_OPTIMIZED_FLOATS = valid(
    opt("litert-1.0", cpu="x86-64"),
    Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_optimized_floats, (1, 5), (0,)),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_OPTIMIZED_FLOATS)
