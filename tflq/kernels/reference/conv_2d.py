"""CONV_2D: patches of the input times a filter per output channel, plus bias, clamped.

| operand | shape          | types                             | quantization                                   |
|---------|----------------|-----------------------------------|------------------------------------------------|
| x       | N, H, W, C     | float32, uint8, int8, int16       | per tensor; int16: zero point 0                |
| w       | O, KH, KW, C/G | float32, uint8, int8, int4, int16 | per tensor; signed: or along O, zero point 0   |
| bias    | O              | float32, int32, int64             | zero point 0                                   |
| y       | N, OH, OW, O   | as x                              | per tensor; int16: zero point 0                |

Options: padding, strides, dilations, fused activation, quantized_bias_type (16-bit activations). G, the number of
groups, follows from the shapes. int16 weights are read as int8, byte by byte, as the source does.
Source: LiteRT 2.3, conv.cc Prepare; reference/conv.h Conv; reference/integer_ops/conv.h ConvPerChannel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.activation import float_range
from tflq.kernels.contraction import (
    Output,
    Product,
    accumulator_16x8,
    centred,
    code_span,
    multipliers,
    output,
    product,
    push_rows,
    require_symmetric,
    stage_of,
    weights_read_as_int8,
)
from tflq.kernels.geometry import Window, patches_into, window
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.kernels.ordered import convolve
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.contract import Range, centre_into


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    window: Window  # pixels
    shape: Shape  # of the output
    group_count: int
    input_zero_point: int  # LSB of input
    weight_zero_point: int  # LSB of weights
    span: Range  # of centred input values
    output: Output
    groups: tuple[Product, ...]  # one per group; empty where the weights are not constant


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    window: Window  # pixels
    shape: Shape  # of the output
    group_count: int
    low: np.float32
    high: np.float32
    weights: Array  # (KH, KW, C/G, O), or empty where they are not constant


def shapes(node: Node) -> tuple[Window, Shape, int]:
    """Window, shape of the output and number of groups, checked."""
    x, w, bias = node.input(0), node.input(1), node.input(2)
    for operand in (x, w):
        node.check(len(operand.shape) == 4, "rank", operand, expected=4, got=len(operand.shape))
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


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multipliers: uint8 rounds the product of scales to float32, the signed types stay in float64."""
    at, shape, groups = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    accumulator = np.dtype(np.int32)
    require_symmetric(node, bias)
    if x.type != TensorType.UINT8:
        require_symmetric(node, w)
    if x.type == TensorType.INT16:
        require_symmetric(node, x, y)
        accumulator = accumulator_16x8(node, bias)
    real = multipliers(node, x, w, bias, y, shape[3])
    target = output(node, stage_of(arithmetic, accumulator, real), y, bias.value, shape[3], accumulator)
    data = OpData(
        window=at,
        shape=shape,
        group_count=groups,
        input_zero_point=x.zero_point,
        weight_zero_point=w.zero_point if x.type == TensorType.UINT8 else 0,
        span=code_span(x),
        output=target,
        groups=(),
    )
    if w.value is None or bias.value is None:
        return Prepared((shape,), data, eval_variable)
    data = replace(data, groups=products(data, w.value))
    return Prepared((shape,), data, eval_pointwise if at.is_pointwise and groups == 1 else eval_quantized)


def products(data: OpData, w: Array) -> tuple[Product, ...]:
    """One matrix a group, of (KH * KW * C/G, O/G) each."""
    codes = centred(weights_read_as_int8(w) if data.output.pipeline.dtype == np.int16 else w, data.weight_zero_point)
    matrix = codes.reshape(codes.shape[0], -1).T
    rows, accumulator = int(np.prod(data.shape[:3])), data.output.bias.dtype
    return tuple(product(part, data.span, rows, accumulator) for part in np.split(matrix, data.group_count, axis=1))


def eval_quantized(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Source: ConvPerChannel, Conv (uint8). Padding: taps outside are left out. Overflow: the accumulator wraps."""
    out = np.empty(data.shape, data.output.pipeline.dtype)
    x = np.ascontiguousarray(x)
    depth = data.groups[0].shape[0] // data.window.taps

    def fill(block: Array, first_row: int, group: int) -> None:
        patches_into(x, data.input_zero_point, data.window, first_row, group * depth, block)

    push_rows(fill, out.size // data.shape[3], data.groups, data.output, out.reshape(-1, data.shape[3]))
    return out


def eval_pointwise(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """1 x 1 taps, stride 1: every pixel is a row. Otherwise as eval_quantized."""
    out = np.empty(data.shape, data.output.pipeline.dtype)
    depth = data.groups[0].shape[0]
    codes = np.ascontiguousarray(x).reshape(-1)

    def fill(block: Array, first_row: int, group: int) -> None:
        start = first_row * depth
        centre_into(codes[start : start + block.size], data.input_zero_point, block.reshape(-1))

    push_rows(fill, out.size // data.shape[3], data.groups, data.output, out.reshape(-1, data.shape[3]))
    return out


def eval_variable(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Weights or bias that another operator computed: bound now, then as eval_quantized."""
    target = data.output.with_bias(bias, data.shape[3])
    return eval_quantized(replace(data, groups=products(data, w), output=target), x, w, bias)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """No constants but geometry, clamp and the weights with output channels innermost."""
    at, shape, groups = shapes(node)
    low, high = float_range(node)
    w = node.input(1)
    constant = np.zeros((0, 0, 0, 0), np.float32) if w.value is None else channels_last(w.value)
    data = FloatData(at, shape, groups, low, high, constant)
    return Prepared((shape,), data, eval_float if w.value is not None else eval_float_variable)


def channels_last(w: Array) -> Array:
    """(O, KH, KW, C) -> (KH, KW, C, O), a fresh array."""
    return np.array(w.transpose(1, 2, 3, 0), order="C")


def eval_float(data: FloatData, x: Array, w: Array, bias: Array) -> Array:
    """Source: Conv (float). Rounding: product and sum apart, over ky, kx, c in order, bias last. Padding: left out."""
    out = np.empty(data.shape, np.float32)
    convolve(
        np.ascontiguousarray(x), data.weights, np.ascontiguousarray(bias).reshape(-1), data.window,
        data.shape[3] // data.group_count, data.low, data.high, out,
    )  # fmt: skip
    return out


def eval_float_variable(data: FloatData, x: Array, w: Array, bias: Array) -> Array:
    """Weights that another operator computed."""
    return eval_float(replace(data, weights=channels_last(w)), x, w, bias)


_VERSIONS = (1, 8)

KERNELS = (
    Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare_float, _VERSIONS),
    Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", prepare_quantized, _VERSIONS),
    Kernel("CONV_2D", "int16 int8|int4|int16 int32|int64 -> int16", prepare_quantized, _VERSIONS),
)
