"""DEPTHWISE_CONV_2D: every input channel convolved with M filters of its own, plus bias, clamped.

| operand | shape            | types                             | quantization                         |
|---------|------------------|-----------------------------------|--------------------------------------|
| x       | N, H, W, C       | float32, uint8, int8, int16       | per tensor; int16: zero point 0      |
| w       | 1, KH, KW, C * M | float32, uint8, int8, int4, int16 | per tensor; signed: or along C * M   |
| bias    | C * M, optional  | float32, int32, int64             | zero point 0                         |
| y       | N, OH, OW, C * M | as x                              | per tensor; int16: zero point 0      |

Options: padding, strides, dilations, fused activation. M follows from the shapes; 16-bit activations believe the option
depth_multiplier and are refused if it differs. The signed forms ignore a weight zero point. Float activations with int8
filters: tflq/engine/kernels/depthwise_conv_2d/hybrid.py; their results up to 2.14 are not claimed.
Only LiteRT's full resolver registers version 7, int8 activations with int4 filters; it scales blocks of eight channels.
Source: LiteRT 2.3, depthwise_conv.cc Prepare; reference/depthwiseconv_uint8.h DepthwiseConvBasicKernel::Run;
reference/depthwiseconv_float.h; reference/integer_ops/depthwise_conv.h DepthwiseConvPerChannel; register_ref.cc;
core/kernels/register.cc; optimized/integer_ops/depthwise_conv.h.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.kernels.depthwise_conv_2d import hybrid
from tflq.engine.kernels.depthwise_conv_2d.shapes import shapes
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.channel_sums import TAPS_AT_ONCE, accumulate, convolution
from tflq.engine.kernels.families.contraction import (
    Output,
    centre,
    code_span,
    filter_zero_point,
    multipliers,
    output,
    require_zero,
    stage_of,
    weights_read_as_int8,
)
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.engine.kernels.families.ordered_sums import convolve_depthwise
from tflq.engine.kernels.families.vector_blocks import CHANNELS as BLOCK
from tflq.engine.kernels.families.vector_blocks import channel_blocks, requantizing
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.patches import slab_into, slab_shape
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.microkernels.lines import TapSums, tap_sums
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.stages import HalfUpTwice, StageOf
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

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
    require_zero(node, bias)
    if wide:
        require_zero(node, x, y)
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


KERNELS = (
    *ROWS,
    *hybrid.ROWS,
    Kernel("DEPTHWISE_CONV_2D", "int8 int4 int32? -> int8", requantizing(prepare_quantized, full_resolver), (7, 7)),
    *valid(tflite(until="tflite-2.14"), *promising(UNCLAIMED_2_14, hybrid.ROWS)),
)
