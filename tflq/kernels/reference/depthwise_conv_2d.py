"""DEPTHWISE_CONV_2D: every input channel convolved with M filters of its own, plus bias, clamped.

| operand | shape            | types                             | quantization                         |
|---------|------------------|-----------------------------------|--------------------------------------|
| x       | N, H, W, C       | float32, uint8, int8, int16       | per tensor; int16: zero point 0      |
| w       | 1, KH, KW, C * M | float32, uint8, int8, int4, int16 | per tensor; signed: or along C * M   |
| bias    | C * M, optional  | float32, int32, int64             | zero point 0                         |
| y       | N, OH, OW, C * M | as x                              | per tensor; int16: zero point 0      |

Options: padding, strides, dilations, fused activation. M follows from the shapes; 16-bit activations believe the option
depth_multiplier and are refused where it says something else. The signed forms take no account of a weight zero point.
Source: LiteRT 2.3, depthwise_conv.cc Prepare; reference/depthwiseconv_uint8.h DepthwiseConvBasicKernel::Run;
reference/depthwiseconv_float.h; reference/integer_ops/depthwise_conv.h DepthwiseConvPerChannel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.activation import float_range
from tflq.kernels.contraction import (
    Output,
    bias_of,
    centred,
    code_span,
    multipliers,
    output,
    require_symmetric,
    stage_of,
    weights_read_as_int8,
)
from tflq.kernels.geometry import Window, slab_into, slab_rows, slab_width, window
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.kernels.ordered import convolve_depthwise
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.compiled import compiled

#: Bytes of centred input and accumulators that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    window: Window  # pixels
    shape: Shape  # of the output
    times: int  # output channels an input channel
    input_zero_point: int  # LSB of input
    weight_zero_point: int  # LSB of weights
    accumulator: np.dtype[Any]  # wide enough for every sum, or as wide as the source's own
    weights: Array  # (KH, KW, C * M), centred, int16; empty where they are not constant
    output: Output


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    window: Window  # pixels
    shape: Shape  # of the output
    low: np.float32
    high: np.float32


def _shapes(node: Node) -> tuple[Window, Shape, int]:
    x, w = node.input(0), node.input(1)
    for operand in (x, w):
        node.check(len(operand.shape) == 4, "rank", operand, expected=4, got=len(operand.shape))
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


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multipliers: uint8 rounds the product of scales to float32, the signed types stay in float64."""
    at, shape, times = _shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    wide = x.type == TensorType.INT16
    require_symmetric(node, bias)
    if wide:
        require_symmetric(node, x, y)
        said = int(node.options["depth_multiplier"])
        if said != times:
            raise UndefinedResultError(node.op, f"depth_multiplier is {said}, the shapes say {times}")
    accumulator = np.dtype(np.int64 if wide else np.int32)
    stage = stage_of(arithmetic, accumulator, multipliers(node, x, w, bias, y, shape[3]))
    data = OpData(
        window=at,
        shape=shape,
        times=times,
        input_zero_point=x.zero_point,
        weight_zero_point=w.zero_point if x.type == TensorType.UINT8 else 0,
        accumulator=_narrowest(at, max(map(abs, code_span(x))), accumulator),
        weights=np.zeros((0, 0, 0), np.int16),
        output=output(node, stage, y, None if bias is None else bias.value, shape[3], accumulator),
    )
    if w.value is None or (bias is not None and bias.value is None):
        return Prepared((shape,), data, eval_variable)
    return Prepared((shape,), replace(data, weights=weights(data, w.value)), eval_quantized)


def _narrowest(at: Window, largest: int, accumulator: np.dtype[Any]) -> np.dtype[Any]:
    """int32 where no sum of taps can leave it: then the source's int64 holds the same."""
    return np.dtype(np.int32) if at.taps * largest * 255 < 2**31 else accumulator


def weights(data: OpData, w: Array) -> Array:
    """(KH, KW, C * M), centred, int16."""
    codes = weights_read_as_int8(w) if data.output.pipeline.dtype == np.int16 else w
    return np.array(centred(codes[0], data.weight_zero_point), np.int16, order="C")


def eval_quantized(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: DepthwiseConvPerChannel, Run (uint8). Padding: taps outside are left out. Overflow: accumulators wrap."""
    at, channels = data.window, data.shape[3]
    out = np.empty(data.shape, data.output.pipeline.dtype)
    x = np.ascontiguousarray(x)
    width = slab_width(at)
    rows = max(1, min(at.out_h, _CACHE_BYTES // (channels * (2 * width * at.stride_h + 4 * max(1, at.out_w)))))
    slab = np.empty((slab_rows(at, rows), width, channels), np.int16)
    sums = np.empty((rows, at.out_w, channels), data.accumulator)
    for n in range(data.shape[0]):
        for start in range(0, at.out_h, rows):
            count = min(rows, at.out_h - start)
            slab_into(x[n], data.input_zero_point, at, start, data.times, slab)
            accumulate(slab, data.weights, at, sums[:count])
            data.output.into(sums[:count].reshape(-1, channels), out[n, start : start + count].reshape(-1, channels))
    return out


@compiled
def accumulate(slab: Array, w: Array, window: Window, sums: Array) -> None:
    """sums[oy, ox, c] = sum over taps of slab times w. `slab` holds the rows that these output rows see."""
    channels = w.shape[2]
    for oy in range(sums.shape[0]):
        for ox in range(sums.shape[1]):
            total = sums[oy, ox]
            total[:] = 0
            for ky in range(window.kernel_h):
                row = slab[oy * window.stride_h + ky * window.dilation_h]
                for kx in range(window.kernel_w):
                    values, factors = row[ox * window.stride_w + kx * window.dilation_w], w[ky, kx]
                    for c in range(channels):
                        total[c] += np.int32(values[c]) * np.int32(factors[c])


def eval_variable(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Weights or bias that another operator computed: bound now, then as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, weights=weights(data, w), output=target), x, w)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """No constants but geometry and clamp."""
    at, shape, _ = _shapes(node)
    return Prepared((shape,), FloatData(at, shape, *float_range(node)), eval_float)


def eval_float(data: FloatData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: DepthwiseConv (float). Rounding: product and sum apart, over ky, kx in order, bias last."""
    out = np.empty(data.shape, np.float32)
    added = bias_of(bias, data.shape[3], np.float32)
    convolve_depthwise(
        np.ascontiguousarray(x), np.ascontiguousarray(w[0]), added, data.window, data.low, data.high, out
    )  # fmt: skip
    return out


_VERSIONS = (1, 6)

KERNELS = (
    Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32? -> float32", prepare_float, _VERSIONS),
    Kernel("DEPTHWISE_CONV_2D", "uint8 uint8 int32? -> uint8", prepare_quantized, _VERSIONS),
    Kernel("DEPTHWISE_CONV_2D", "int8 int8|int4 int32? -> int8", prepare_quantized, _VERSIONS),
    Kernel("DEPTHWISE_CONV_2D", "int16 int8|int16 int64? -> int16", prepare_quantized, _VERSIONS),
)
