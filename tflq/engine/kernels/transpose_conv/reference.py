"""TRANSPOSE_CONV: every input pixel spread over the output through the filter, plus bias, clamped.

| operand | shape          | types                       | quantization                                       |
|---------|----------------|-----------------------------|----------------------------------------------------|
| shape   | 4              | int32                       | none; it may be computed                           |
| w       | O, KH, KW, C   | float32, uint8, int8        | uint8: per tensor; else per tensor or along O      |
| x       | N, H, W, C     | float32, uint8, int8, int16 | per tensor; int16: zero point 0                    |
| bias    | O, optional    | float32, int32, int64       | zero point 0 (signed types)                        |
| y       | N, OH, OW, O   | as x                        | per tensor; int16: zero point 0                    |

Options: padding, strides, fused activation (clamps the quantized and the float form), quantized_bias_type (16-bit
activations). The signed forms ignore a weight zero point. Hybrid: tflq/engine/kernels/transpose_conv/hybrid.py.
16-bit activations up to 2.14: the bias alone decides how wide the accumulator is, 32 bits if there is none; up to 2.7
it has 64 bits. Up to 2.11, a fused activation is ignored.
Source: LiteRT 2.3, transpose_conv.cc Prepare, Eval; reference/transpose_conv.h TransposeConv;
reference/integer_ops/transpose_conv.h TransposeConv. TensorFlow 2.8 to 2.14, transpose_conv.cc Eval,
EvalQuantizedPerChannel16x8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.contraction import (
    Output,
    accumulator_16x8,
    bias_of,
    centre,
    code_span,
    filter_zero_point,
    multipliers,
    output,
    require_zero,
    stage_of,
)
from tflq.engine.kernels.families.ordered_sums import convolve_transposed
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.transpose_conv import hybrid
from tflq.engine.kernels.transpose_conv.shapes import Geometry, shapes
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.contract import Contraction, Range, centre_into
from tflq.model.ir import TensorType
from tflq.typing import Array


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
        require_zero(node, bias)
    if x.type == TensorType.INT16:
        require_zero(node, x, y)
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
    """Bind weights or bias that another operator computed, then evaluate as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, spread=contraction(data, w), output=target), output_shape, w, x)


def prepare_float(node: Node, arithmetic: Arithmetic, geometry: Geometry = shapes) -> Prepared:
    """Prepare geometry and clamp."""
    at, shape = geometry(node)
    return Prepared((shape,), FloatData(at, shape, float_range(node)), eval_float)


def eval_float(data: FloatData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: TransposeConv (float). Rounding: product and sum apart, over y, x, c of the input in order, bias last."""
    out = np.empty(data.shape, np.float32)
    weights = np.array(w.transpose(1, 2, 3, 0), order="C")
    added = bias_of(bias, data.shape[3], np.float32)
    convolve_transposed(np.ascontiguousarray(x), weights, added, data.window, *data.clamp, out)
    return out


def prepare_as_wide_as_bias(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare for a model that declares the type its bias has, int32 without a bias."""
    bias = node.optional(3)
    width = TensorType.INT32 if bias is None else bias.type
    fields = {**node.options.fields, "quantized_bias_type": int(width)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


Prepare = Callable[[Node, Arithmetic], Prepared]


def unactivated(prepare: Prepare) -> Prepare:
    """Return a prepare that ignores the fused activation."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        fields = {**node.options.fields, "fused_activation_function": 0}
        return prepare(replace(node, options=replace(node.options, fields=fields)), arithmetic)

    return prepared


def without_activations(*rows: Kernel) -> tuple[Kernel, ...]:
    """Return the rows without fused activations."""
    return tuple(replace(row, prepare=unactivated(row.prepare)) for row in rows)


_VERSIONS = (1, 5)

ROWS = (
    Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare_float, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 uint8 uint8 int32? -> uint8", prepare_quantized, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int8 int32? -> int8", prepare_quantized, _VERSIONS, (0,)),
    Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32|int64? -> int16", prepare_quantized, _VERSIONS, (0,)),
)
#: 16-bit activations whose bias decides how wide the accumulator is.
INT16 = replace(ROWS[3], prepare=prepare_as_wide_as_bias)
#: 16-bit activations with accumulators of 64 bits and without fused activations.
WIDE_INT16 = without_activations(ROWS[3])

KERNELS = (
    *ROWS,
    *hybrid.ROWS,
    *valid(tflite(until="litert-1.0"), *(replace(row, prepare=hybrid.prepare_by_channel) for row in hybrid.ROWS)),
    *valid(tflite(until="tflite-2.14"), INT16),
    *valid(tflite(until="tflite-2.11"), *without_activations(INT16, *ROWS[:3])),
    *valid(tflite(until="tflite-2.7"), *WIDE_INT16),
)
