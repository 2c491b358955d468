"""DEPTHWISE_CONV_2D: every input channel convolved with filters of its own.

Shapes of DEPTHWISE_CONV_2D, checked.

DEPTHWISE_CONV_2D, hybrid: float images, quantized on the way, against int8 filters.

| operand | shape            | types   | quantization    |
|---------|------------------|---------|-----------------|
| x       | N, H, W, C       | float32 | none            |
| w       | 1, KH, KW, C * M | int8    | along C * M     |
| bias    | C * M, optional  | float32 |                 |
| y       | N, OH, OW, C * M | float32 | none            |

Options: padding, strides, dilations, depth_multiplier, fused activation. Every image is quantized asymmetrically with
one scale. A depth_multiplier that differs from the shapes is refused, and so are fewer scales than channels. Weight
zero points are not looked at.
Source: LiteRT 2.3, depthwise_conv.cc Prepare, EvalHybridPerChannel;
reference/integer_ops/depthwise_conv.h DepthwiseConvHybridPerChannel.

DEPTHWISE_CONV_2D: every input channel convolved with M filters of its own, plus bias, clamped.

| operand | shape            | types                             | quantization                         |
|---------|------------------|-----------------------------------|--------------------------------------|
| x       | N, H, W, C       | float32, uint8, int8, int16       | per tensor; int16: zero point 0      |
| w       | 1, KH, KW, C * M | float32, uint8, int8, int4, int16 | per tensor; signed: or along C * M   |
| bias    | C * M, optional  | float32, int32, int64             | zero point 0                         |
| y       | N, OH, OW, C * M | as x                              | per tensor; int16: zero point 0      |

Options: padding, strides, dilations, fused activation. M follows from the shapes; 16-bit activations believe the
option depth_multiplier and are refused if it differs. The signed forms ignore a weight zero point. Float activations
with int8 filters; their results up to 2.14 are not claimed. Only LiteRT's full resolver registers version 7, int8
activations with int4 filters; it scales blocks of eight channels. Source: LiteRT 2.3, depthwise_conv.cc Prepare;
reference/depthwiseconv_uint8.h DepthwiseConvBasicKernel::Run; reference/depthwiseconv_float.h;
reference/integer_ops/depthwise_conv.h DepthwiseConvPerChannel; register_ref.cc; core/kernels/register.cc;
optimized/integer_ops/depthwise_conv.h.

DEPTHWISE_CONV_2D of the optimized resolver.

int8: the reference's sums; vector code scales eight channels at a time. uint8 on AArch64: scaled by vector code if the
kernel for 3 x 3 filters applies, else as the reference.
float32: sums begin with the bias. The bias must be there, and the channels must fit into a buffer: the source does not
look. Up to 2.14 the build for x86-64 has no vector code of its own.
Hybrid: the reference's sums; vector code scales by the filter first, four channels at a time; a bias must be there.
Source: LiteRT 2.3 optimized/integer_ops/depthwise_conv.h DepthwiseConvGeneral, Quantize (int8);
depthwiseconv_3x3_filter_common.h Fast3x3FilterKernelSupported; depthwiseconv_uint8_3x3_filter.h;
optimized/depthwiseconv_float.h DepthwiseConvImpl, with the NEON code through SSE, and TensorFlow 2.14's without it;
optimized/integer_ops/depthwise_conv_hybrid.h DoDepthwiseConvHybridGeneral.

DEPTHWISE_CONV_2D of r1.15 on int8: the fused activation is ignored, only the type's range clamps.

Everything else is as in the reference kernel; uint8 and float32 honour the activation.
Source: TensorFlow r1.15 lite/kernels/depthwise_conv.cc EvalQuantizedPerChannel;
reference/integer_ops/depthwise_conv.h DepthwiseConvPerChannel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.kernels.checks import require_rank, require_zero_point_zero
from tflq.engine.kernels.families.activation import clamp_in_place, float_range, without_activation
from tflq.engine.kernels.families.channel_sums import TAPS_AT_ONCE, accumulate, convolution
from tflq.engine.kernels.families.contraction import (
    Output,
    bias_of,
    centre,
    code_span,
    filter_zero_point,
    multipliers,
    output,
    require_quantized,
    stage_of,
    weights_read_as_int8,
)
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14, centre_images, channel_scales
from tflq.engine.kernels.families.ordered import convolve_depthwise
from tflq.engine.kernels.families.unary import beside_dense, unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import CHANNELS as BLOCK
from tflq.engine.kernels.families.vector_blocks import channel_blocks, eight_channels, in_whole_blocks, requantizing
from tflq.engine.kernels.geometry.windows import Window, slab_into, slab_shape, window
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepare, Prepared, Shape, by_form, filling, promising, valid
from tflq.engine.kernels.validity import opt, tf1, tflite
from tflq.engine.microkernels.taps import TapSums, tap_sums
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.multiplier import quantize_multiplier
from tflq.engine.numerics.stage_roundings import HalfUpTwice
from tflq.engine.numerics.stages import StageOf, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def shapes(node: Node) -> tuple[Window, Shape, int]:
    """Return the window, the shape of the output and the output channels an input channel, checked."""
    x, w = node.input(0), node.input(1)
    for operand in (x, w):
        require_rank(node, operand, 4)
    node.check(min(x.shape[1:]) > 0, "empty image", x, got=x.shape)
    node.check(min(w.shape[1:]) > 0, "empty filter", w, got=w.shape)
    node.check(w.shape[0] == 1, "first dimension", w, expected=1, got=w.shape[0])
    depth, channels = x.shape[3], w.shape[3]
    node.check(channels % depth == 0, "output channels", w, expected=f"a multiple of {depth}", got=channels)
    if len(node.inputs) > 2:
        bias = node.input(2)
        node.check(bias.shape == (channels,), "bias shape", bias, expected=(channels,), got=bias.shape)
    at = window(node, x.shape, (w.shape[1], w.shape[2]))
    return at, (x.shape[0], at.out_h, at.out_w, channels), channels // depth


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    window: Window  # pixels
    shape: Shape  # of the output
    scale: Array  # of the filters, one a channel, float32
    clamp: NumberClamp


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require scales along the last dimension."""
    at, shape, times = shapes(node)
    w = node.input(1)
    node.check(shape[0] > 0, "no images", node.input(0))
    require_quantized(node, w)
    said = int(node.options["depth_multiplier"])
    if said != times:
        raise UndefinedResultError(node.op, f"depth_multiplier is {said}, the shapes give {times}")
    return Prepared((shape,), HybridData(at, shape, channel_scales(node, w, shape[3]), float_range(node)), evaluate)


def evaluate(data: HybridData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: DepthwiseConvHybridPerChannel. Rounding: sum to float32, times the product of the scales, then bias."""
    out, scales = _sums(data, x, w)
    out *= (scales[:, None] * data.scale)[:, None, None, :]
    if bias is not None:
        out += bias_of(bias, data.shape[3], np.float32)
    return clamp_in_place(out, *data.clamp)


def _sums(data: HybridData, x: Array, w: Array) -> tuple[Array, Array]:
    """Return the sums (N, OH, OW, C * M) of images, quantized, turned to float32, and the scales of the images."""
    codes, scales = centre_images(x)
    sums, nothing = np.empty(data.shape, np.int32), np.zeros(data.shape[3], np.int32)
    limits = type_range(np.int32)
    convolve_depthwise(codes, np.ascontiguousarray(w[0]), nothing, nothing, data.window, *limits, sums)
    return sums.astype(np.float32), scales


HYBRID_ROWS = (Kernel("DEPTHWISE_CONV_2D", "float32 int8 float32? -> float32", prepare, (1, 6)),)


#: Elements of the innermost loop: weights of nine taps stay in a core's first-level cache.
_RUN = 1024

#: Bytes of centred input and accumulators that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    window: Window  # pixels
    shape: Shape  # of the output
    times: int  # output channels an input channel
    input_zero_point: ZeroPoint  # LSB of input
    weight_zero_point: ZeroPoint  # LSB of weights
    codes: np.dtype[Any]  # of the input
    accumulator: np.dtype[Any]  # wide enough for every sum, or as wide as the source's own
    weights: Array  # (taps, pixels * C * M), centred, int16, see `weights`; empty where they are not constant
    offsets: Array  # of the taps, in elements of the slab, int64
    output: Output
    taps: TapSums | None = field(init=False)  # bound to all of the above, where the processor has a kernel for it

    def __post_init__(self) -> None:
        object.__setattr__(self, "taps", _bind(self) if self.weights.size else None)


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    window: Window  # pixels
    shape: Shape  # of the output
    clamp: NumberClamp


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute multipliers: uint8 rounds the product of scales to float32, signed types stay in float64."""
    at, shape, times = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    wide = x.type == TensorType.INT16
    weight_zero_point = filter_zero_point(node, x, w)
    require_zero_point_zero(node, bias)
    if wide:
        require_zero_point_zero(node, x, y)
        said = int(node.options["depth_multiplier"])
        if said != times:
            raise UndefinedResultError(node.op, f"depth_multiplier is {said}, the shapes give {times}")
    accumulator = np.dtype(np.int64 if wide else np.int32)
    stage = stage_of(arithmetic, accumulator, multipliers(node, arithmetic, x, w, bias, y, shape[3]))
    data = OpData(
        window=at,
        shape=shape,
        times=times,
        input_zero_point=x.zero_point,
        weight_zero_point=weight_zero_point,
        codes=CARRIER[x.type],
        accumulator=_narrowest(at, max(map(abs, code_span(x))), accumulator),
        weights=np.zeros((0, 0), np.int16),
        offsets=tap_offsets(at, shape[3]),
        output=output(node, stage, y, None if bias is None else bias.value, shape[3], accumulator),
    )
    if w.value is None or (bias is not None and bias.value is None):
        return Prepared((shape,), data, eval_variable)
    return Prepared((shape,), replace(data, weights=weights(data, w.value)), eval_quantized)


def _bind(data: OpData) -> TapSums | None:
    channels, taps = data.shape[3], data.window.taps
    return tap_sums(
        np.dtype(data.codes),
        int(data.input_zero_point),
        data.weights[:taps, :channels],
        data.offsets[:taps],
        data.output.bias[:channels],
        data.output.pipeline,
    )


def _narrowest(at: Window, largest: int, accumulator: np.dtype[Any]) -> np.dtype[Any]:
    """Return int32 if no sum of taps can leave it: then the source's int64 holds the same."""
    return np.dtype(np.int32) if at.taps * largest * 255 < 2**31 else accumulator


def weights(data: OpData, w: Array) -> Array:
    """Return weights (taps, pixels * C * M), centred, int16, in whole passes, repeated over a run of pixels."""
    codes = weights_read_as_int8(w) if data.output.pipeline.dtype == np.int16 else w
    taps = np.zeros((len(data.offsets), data.shape[3]), np.int16)
    taps[: data.window.taps] = centre(codes, data.weight_zero_point).reshape(-1, data.shape[3])
    return np.tile(taps, (1, max(1, min(data.window.out_w, _RUN // data.shape[3]))))


def tap_offsets(at: Window, channels: int) -> Array:
    """Return offsets of the taps from the first one, in elements of the slab, filled up to whole passes."""
    _, phases, width = slab_shape(at, 1)
    rows, columns = np.arange(at.kernel_h) * at.dilation_h, np.arange(at.kernel_w) * at.dilation_w
    pixels = rows[:, None] * phases * width + columns % phases * width + columns // phases
    offsets = pixels.reshape(-1) * channels
    return np.pad(offsets, (0, -len(offsets) % TAPS_AT_ONCE))


@filling(lambda data, *_: (data.shape, data.output.pipeline.dtype))
def eval_quantized(data: OpData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Source: DepthwiseConvPerChannel, Run (uint8). Padding: taps outside are left out. Overflow: accumulators wrap."""
    x, taps = np.ascontiguousarray(x), data.taps
    if taps is None or not out.size:
        return partial(_by_sums, data, x, out)
    _, phases, columns = slab_shape(data.window, 1)
    line = phases * columns * data.shape[3] * data.window.stride_h * x.itemsize
    rows = max(1, min(data.window.out_h, _CACHE_BYTES // line))
    return convolution(taps, x, data.window, data.times, int(data.input_zero_point), rows, out)


def _by_sums(data: OpData, x: Array, out: Array) -> None:
    """Convolve by plain loops, with sums in memory."""
    at, channels = data.window, data.shape[3]
    rows = max(1, min(at.out_h, _CACHE_BYTES // _row_bytes(at, channels, data.accumulator)))
    slab = np.empty((*slab_shape(at, rows), channels), np.int16)
    sums = np.empty((rows, at.out_w * channels), data.accumulator)
    values, pixels = slab.reshape(-1), sums.reshape(rows, at.out_w, channels)
    for n in range(data.shape[0]):
        for start in range(0, at.out_h, rows):
            count = min(rows, at.out_h - start)
            slab_into(x[n], int(data.input_zero_point), 0, at, start * at.stride_h - at.pad_top, data.times, slab)
            accumulate(values, slab[0].size * at.stride_h, data.weights, data.offsets, 0, 0, pixels[:count])
            data.output.into(sums[:count].reshape(-1, channels), out[n, start : start + count].reshape(-1, channels))


def _row_bytes(at: Window, channels: int, accumulator: np.dtype[Any]) -> int:
    _, phases, columns = slab_shape(at, 1)
    return channels * (2 * phases * columns * at.stride_h + accumulator.itemsize * max(1, at.out_w))


def eval_variable(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Bind weights or bias that another operator computed, then evaluate as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, weights=weights(data, w), output=target), x, w)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    at, shape, _ = shapes(node)
    return Prepared((shape,), FloatData(at, shape, float_range(node)), eval_float)


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float(data: FloatData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Source: DepthwiseConv (float). Rounding: product and sum apart, over ky, kx in order, bias last."""
    start = np.zeros(data.shape[3], np.float32)
    added = start if bias is None else np.ascontiguousarray(bias).reshape(-1)
    return convolve_depthwise.bound(
        np.ascontiguousarray(x), np.ascontiguousarray(w[0]), start, added, data.window, *data.clamp, out
    )


_VERSIONS = (1, 6)

ROWS = (
    Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32? -> float32", prepare_float, _VERSIONS),
    Kernel("DEPTHWISE_CONV_2D", "uint8 uint8 int32? -> uint8", prepare_quantized, _VERSIONS),
    Kernel("DEPTHWISE_CONV_2D", "int8 int8|int4 int32? -> int8", prepare_quantized, _VERSIONS),
    Kernel("DEPTHWISE_CONV_2D", "int16 int8|int16 int64? -> int16", prepare_quantized, _VERSIONS),
)


def full_resolver(arithmetic: Arithmetic) -> StageOf:
    """Return stages that round whole blocks of eight channels half up twice, and the rest as usual."""
    return channel_blocks(replace(arithmetic, requantize_simd=HalfUpTwice.of), BLOCK)


_REFERENCE = (
    *ROWS,
    *HYBRID_ROWS,
    Kernel("DEPTHWISE_CONV_2D", "int8 int4 int32? -> int8", requantizing(prepare_quantized, full_resolver), (7, 7)),
    *valid(tflite(until="tflite-2.14"), *promising(UNCLAIMED_2_14, HYBRID_ROWS)),
)


#: Channels that the kernel takes at a time: it leaves none over.
_CHANNELS = 8


def check_bias(node: Node) -> None:
    """Refuse an absent bias: the process dies. Source: DepthwiseConvInitAccBuffer of floats and codes."""
    if node.optional(2) is None:
        raise UndefinedResultError(node.op, "an absent bias is read through a null pointer")


def biased(prepare: Prepare) -> Prepare:
    """Return a prepare that refuses an absent bias, unless there is nothing to compute."""

    def prepare_biased(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare(node, arithmetic)
        if 0 not in (prepared.shapes[0] or ()):
            check_bias(node)
        return prepared

    return prepare_biased


def prepare_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the reference's operator with the scaling of the kernel that applies."""
    at, shape, times = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    _, shift = quantize_multiplier(float(multipliers(node, arithmetic, x, w, bias, y, 1)[0]))
    if times == 1 and shape[3] % _CHANNELS == 0 and shift <= 0 and is_fast_window(at):
        arithmetic = replace(arithmetic, requantize=arithmetic.requantize_simd)
    return prepare_quantized(node, arithmetic)


def is_fast_window(at: Window) -> bool:
    """Return whether it is 3 x 3, with equal strides of 1 or 2 and at most one pixel of border on every side.

    Padding of one pixel may not be exceeded below or to the right; without padding there is none there either. A line
    of several pixels is too thin.
    """
    if (at.kernel_h, at.kernel_w, at.dilation_h, at.dilation_w) != (3, 3, 1, 1):
        return False
    if at.stride_h != at.stride_w or at.stride_h > 2 or at.pad_top != at.pad_left or at.pad_top > 1:
        return False
    below = (at.out_h - 1) * at.stride_h - at.pad_top + at.kernel_h - at.height
    right = (at.out_w - 1) * at.stride_w - at.pad_left + at.kernel_w - at.width
    if max(below, right) > at.pad_top:
        return False
    return at.pad_top == 0 or min(at.height, at.width) > 1 or at.height == at.width


#: Floats that are summed up at a time, whole pixels of one row of the image, and floats in a vector.
BUFFER, VECTOR = 4832, 4


def held_by(vector: int) -> Prepare:
    """Return a prepare that clamps by vectors of `vector` floats, and one by one for the rest of a buffer."""

    @filling(lambda data, *_: (data.shape, np.float32))
    def evaluate(data: FloatData, out: Array, x: Array, w: Array, bias: Array) -> Call:
        """Rounding: product and sum apart, over ky, kx in order, bias first. Padding: left out."""
        start = bias.reshape(-1)
        nothing = np.full_like(start, -0.0)
        image, weights = np.ascontiguousarray(x), np.ascontiguousarray(w[0])
        convolve = convolve_depthwise.bound(image, weights, start, nothing, data.window, *data.clamp, out)
        rows = out.reshape(-1, data.shape[2] * data.shape[3])
        rests = [rest for part in _buffers(data) if (rest := _rest(rows[:, part], vector)).size]
        return (lambda: _with_rests(convolve, rests, *data.clamp)) if rests else convolve

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare_float(node, arithmetic)
        data: FloatData = prepared.data
        if 0 in data.shape:
            return prepared
        check_bias(node)
        if data.shape[3] > BUFFER:
            raise UndefinedResultError("DepthwiseConvImpl", f"{data.shape[3]} channels are more than its buffer holds")
        return Prepared(prepared.shapes, data, evaluate)

    return prepare


def _buffers(data: FloatData) -> Iterator[slice]:
    """Return the parts of an output row that fill one buffer each."""
    width, step = data.shape[2] * data.shape[3], BUFFER // data.shape[3] * data.shape[3]
    return (slice(first, min(first + step, width)) for first in range(0, width, step))


def _rest(part: Array, vector: int) -> Array:
    """Return the elements of a buffer that no whole vector takes."""
    return part[:, in_whole_blocks(part.shape[1], vector) :]


def _with_rests(convolve: Call, rests: Sequence[Array], low: np.float32, high: np.float32) -> None:
    """Convolve; after the vectors, NaN becomes the upper limit, and -0.0 at a limit of 0 becomes 0.0."""
    convolve()
    for rest in rests:
        np.fmin(rest, high, out=rest)
        if low == 0:
            np.add(rest, np.float32(0), out=rest)


#: More than a buffer ever holds.
_NEVER = BUFFER + 1

#: Channels that the vector loop takes at a time.
_HYBRID_CHANNELS = 4


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    check_bias(node)
    prepared = prepare(node, arithmetic)
    return Prepared(prepared.shapes, prepared.data, eval_hybrid)


def eval_hybrid(data: HybridData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: sum to float32; in whole blocks times the filter's scale, times the image's; else the other way round;
    then bias.
    """
    out, scales = _sums(data, x, w)
    at = in_whole_blocks(data.shape[3], _HYBRID_CHANNELS)
    image = scales[:, None, None, None]
    out[..., :at] *= data.scale[:at]
    out *= image
    out[..., at:] *= data.scale[at:]
    out += bias.reshape(-1)
    np.copyto(out[..., :at], data.clamp.low, where=np.isnan(out[..., :at]))  # maxps takes the limit
    return clamp_in_place(out, *data.clamp)


_OPTIMIZED = (
    *by_form(
        "DEPTHWISE_CONV_2D",
        6,
        {
            "uint8 uint8 int32? -> uint8": {
                opt(): biased(prepare_quantized),
                opt(cpu="arm64", vectors=True): biased(prepare_uint8),
            },
            "int8 int8|int4 int32? -> int8": {
                opt(): biased(prepare_quantized),
                opt(vectors=True): biased(requantizing(prepare_quantized, eight_channels)),
            },
            "float32 float32 float32? -> float32": {
                opt("litert-1.0"): held_by(VECTOR),
                opt(until="tflite-2.14"): held_by(_NEVER),
            },
            "float32 int8 float32? -> float32": {opt("litert-1.0"): prepare_hybrid},
        },
    ),
    *valid(opt(), *unclaimed_floats(beside_dense(ROWS))),
)


_TF1 = valid(
    tf1(), Kernel("DEPTHWISE_CONV_2D", "int8 int8 int32? -> int8", without_activation(prepare_quantized), (1, 3))
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_OPTIMIZED, *_TF1)
