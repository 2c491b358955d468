"""CONV_2D: patches of the input times a filter per output channel, plus bias, clamped.

| operand | shape          | types                             | quantization                                   |
|---------|----------------|-----------------------------------|------------------------------------------------|
| x       | N, H, W, C     | float32, uint8, int8, int16       | per tensor; int16: zero point 0                |
| w       | O, KH, KW, C/G | float32, uint8, int8, int4, int16 | per tensor; signed: or along O, zero point 0   |
| bias    | O              | float32, int32, int64             | zero point 0                                   |
| y       | N, OH, OW, O   | as x                              | per tensor; int16: zero point 0                |

Options: padding, strides, dilations, fused activation, quantized_bias_type (16-bit activations). G, the number of
groups, follows from the shapes. int16 weights are read as int8, byte by byte, as the source does. Float activations
with narrow weights: tflq/engine/kernels/conv_2d/hybrid.py.
Up to LiteRT 1.0, packed weights are refused. Hybrid results up to 2.14 are not claimed, and those up to 2.5 are
refused: 2.5.3 was seen to give results that have nothing in common with those of later releases.
Source: LiteRT 2.3, conv.cc Prepare; reference/conv.h Conv; reference/integer_ops/conv.h ConvPerChannel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NoReturn

import numpy as np

from tflq.engine.kernels.conv_2d import hybrid
from tflq.engine.kernels.conv_2d.shapes import shapes
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.contraction import (
    Output,
    accumulator_16x8,
    centre,
    filter_zero_point,
    multipliers,
    output,
    require_symmetric,
    require_zero,
    stage_of,
    weights_read_as_int8,
)
from tflq.engine.kernels.families.four_bits import refuse_packed
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.engine.kernels.families.matrix_products import Products, products
from tflq.engine.kernels.families.operand_rows import Patches, PlainRows, Rows
from tflq.engine.kernels.families.ordered_products import OrderedProduct
from tflq.engine.kernels.families.ordered_sums import convolve
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


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


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute multipliers: uint8 rounds the product of scales to float32, signed types stay in float64."""
    at, shape, groups = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.input(2), node.outputs[0]
    accumulator = np.dtype(np.int32)
    weight_zero_point = filter_zero_point(node, x, w)
    require_zero(node, bias)
    if x.type != TensorType.UINT8:
        require_symmetric(node, w)
    if x.type == TensorType.INT16:
        require_zero(node, x, y)
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
    rows: Rows = Patches(data.input_zero_point, data.window, matrix.shape[0] // data.window.taps)
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
    """Prepare geometry, clamp and the weights with output channels innermost."""
    at, shape, groups = shapes(node)
    w = node.input(1)
    constant = np.zeros((0, 0, 0, 0), np.float32) if w.value is None else channels_last(w.value)
    matrix = constant.reshape(-1, shape[3])
    product = OrderedProduct.of(matrix, at, prod(shape[:3])) if groups == 1 and constant.size else None
    data = FloatData(at, shape, groups, float_range(node), constant, product)
    return Prepared((shape,), data, eval_float if w.value is not None else eval_float_variable)


def channels_last(w: Array) -> Array:
    """Return (O, KH, KW, C) as (KH, KW, C, O), a new array."""
    return np.array(w.transpose(1, 2, 3, 0), order="C")


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float(data: FloatData, out: Array, x: Array, w: Array, bias: Array) -> Call:
    """Source: Conv (float). Rounding: product and sum apart, over ky, kx, c in order, bias last. Padding: left out."""
    image, added = np.ascontiguousarray(x), np.ascontiguousarray(bias).reshape(-1)
    if data.product is not None:
        return data.product.into(image, added, data.clamp, out.reshape(-1, data.shape[3]))
    return convolve.bound(image, data.weights, added, data.window, data.shape[3] // data.group_count, *data.clamp, out)


def eval_float_variable(data: FloatData, x: Array, w: Array, bias: Array) -> Array:
    """Evaluate with weights that another operator computed."""
    return eval_float(replace(data, weights=channels_last(w)), x, w, bias)


_VERSIONS = (1, 8)

ROWS = (
    Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare_float, _VERSIONS),
    Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", prepare_quantized, _VERSIONS),
    Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", prepare_quantized, _VERSIONS),
    Kernel("CONV_2D", "int16 int8|int4|int16 int32|int64 -> int16", prepare_quantized, _VERSIONS),
)

_PACKED = (
    Kernel("CONV_2D", "int16 int4 int32|int64 -> int16", refuse_packed),
    Kernel("CONV_2D", "float32 int4 float32 -> float32", refuse_packed),
)


def refuse_hybrid(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator."""
    raise UndefinedResultError(node.op, "float activations with 8-bit filters are not modelled up to release 2.5")


KERNELS = (
    *ROWS,
    *hybrid.ROWS,
    *valid(tflite(until="tflite-2.14"), *_PACKED, *promising(UNCLAIMED_2_14, hybrid.ROWS)),
    *valid(tflite("litert-1.0", "litert-1.0"), *_PACKED),
    *valid(tflite(until="tf-2.5"), *(replace(row, prepare=refuse_hybrid) for row in hybrid.ROWS)),
)
