"""TRANSPOSE_CONV: every input pixel spread over the output through the filter, plus bias, clamped.

| operand | shape          | types                       | quantization                                       |
|---------|----------------|-----------------------------|----------------------------------------------------|
| shape   | 4              | int32                       | none; it may be computed                           |
| w       | O, KH, KW, C   | float32, uint8, int8        | uint8: per tensor; else per tensor or along O      |
| x       | N, H, W, C     | float32, uint8, int8, int16 | per tensor; int16: zero point 0                    |
| bias    | O, optional    | float32, int32, int64       | zero point 0 (signed types)                        |
| y       | N, OH, OW, O   | as x                        | per tensor; int16: zero point 0                    |

Options: padding, strides, fused activation (clamps the quantized and the float form), quantized_bias_type (16-bit
activations). The signed forms leave a weight zero point out of account.
Source: LiteRT 2.3, transpose_conv.cc Prepare, Eval; reference/transpose_conv.h TransposeConv;
reference/integer_ops/transpose_conv.h TransposeConv.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.ir import TensorType
from tflq.jit.compiled import Int, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.families.activation import float_range
from tflq.kernels.families.contraction import (
    Output,
    accumulator_16x8,
    bias_of,
    centred,
    code_span,
    filter_zero_point,
    multipliers,
    output,
    require_symmetric,
    stage_of,
)
from tflq.kernels.families.ordered_sums import convolve_transposed
from tflq.kernels.geometry.windows import Window, window
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import NumberClamp, ZeroPoint
from tflq.numerics.contract import Contraction, Range, centre_into

_STEPS = (1, 2**15 - 1)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    input_zero_point: ZeroPoint  # LSB of input
    weight_zero_point: ZeroPoint  # LSB of weights
    span: Range  # of centred input values
    output: Output
    spread: Contraction | None  # (C, KH * KW * O); None where the weights are not constant


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    window: Window  # as in OpData
    shape: Shape  # of the output
    clamp: NumberClamp


def shapes(node: Node) -> tuple[Window, Shape]:
    """Window of the convolution that is transposed and shape of the output, checked."""
    check_operands(node)
    target, w, x = node.input(0), node.input(1), node.input(2)
    shape = tuple(int(n) for n in node.constant(0))
    fits = len(shape) == 4 and shape[0] == x.shape[0] and shape[3] == w.shape[0] and min(shape[1:3], default=0) > 0
    node.check(fits, "output shape", target, expected=f"({x.shape[0]}, OH, OW, {w.shape[0]})", got=shape)
    at = window(node, shape, (w.shape[1], w.shape[2]))
    node.check((at.out_h, at.out_w) == x.shape[1:3], "image size", x, expected=(at.out_h, at.out_w), got=x.shape[1:3])
    return at, shape


def check_operands(node: Node) -> None:
    """Refuse operands whose shapes do not go together, and steps out of range."""
    output_shape, w, x = node.input(0), node.input(1), node.input(2)
    node.check(len(output_shape.shape) == 1, "rank", output_shape, expected=1, got=len(output_shape.shape))
    for operand in (x, w):
        node.check(len(operand.shape) == 4, "rank", operand, expected=4, got=len(operand.shape))
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


def prepare_quantized(node: Node, arithmetic: Arithmetic, geometry: Geometry = shapes) -> Prepared:
    """Multipliers: uint8 rounds the product of scales to float32, the signed types stay in float64."""
    at, shape = geometry(node)
    w, x, bias, y = node.input(1), node.input(2), node.optional(3), node.outputs[0]
    accumulator = np.dtype(np.int32)
    weight_zero_point = filter_zero_point(node, x, w)
    if x.type != TensorType.UINT8:
        require_symmetric(node, bias)
    if x.type == TensorType.INT16:
        require_symmetric(node, x, y)
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
    """The weights (O, KH, KW, C), centred, as a matrix (C, KH * KW * O)."""
    codes = centred(w, data.weight_zero_point)
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
            scatter(spread(rows[:count], parts[:count]), start, at, sums)
        data.output.into(sums.reshape(-1, channels), out[n].reshape(-1, channels))
    return out


@in_pieces(parts="r", first_pixel="r")
@compiled
def scatter(parts: Array, first_pixel: Int, window: Window, sums: Array) -> None:
    """Add parts[i] (taps x channels), made by input pixel first_pixel + i, where its taps fall. Sums wrap.

    Prepare guarantees: `sums` is (height, width, channels) of `window`, a row of `parts` has all taps of all channels.
    """
    channels = sums.shape[2]
    for i in range(parts.shape[0]):
        pixel = first_pixel + i
        top = pixel // window.out_w * window.stride_h - window.pad_top
        left = pixel % window.out_w * window.stride_w - window.pad_left
        for ky in range(window.kernel_h):
            y = top + ky
            if y < 0 or y >= window.height:
                continue
            for kx in range(window.kernel_w):
                column = left + kx
                if column < 0 or column >= window.width:
                    continue
                at = (ky * window.kernel_w + kx) * channels
                for c in range(channels):
                    sums[y, column, c] += np.int64(parts[i, at + c])


def eval_variable(data: OpData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Weights or bias that another operator computed: bound now, then as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, spread=contraction(data, w), output=target), output_shape, w, x)


def prepare_float(node: Node, arithmetic: Arithmetic, geometry: Geometry = shapes) -> Prepared:
    """No constants but geometry and clamp."""
    at, shape = geometry(node)
    return Prepared((shape,), FloatData(at, shape, float_range(node)), eval_float)


def eval_float(data: FloatData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: TransposeConv (float). Rounding: product and sum apart, over y, x, c of the input in order, bias last."""
    out = np.empty(data.shape, np.float32)
    weights = np.array(w.transpose(1, 2, 3, 0), order="C")
    added = bias_of(bias, data.shape[3], np.float32)
    convolve_transposed(np.ascontiguousarray(x), weights, added, data.window, *data.clamp, out)
    return out


_VERSIONS = (1, 5)

KERNELS = (
    Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_float, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 uint8 uint8 int32? -> uint8", prepare_quantized, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", prepare_quantized, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32|int64? -> int16", prepare_quantized, _VERSIONS, (0,)),
)
