"""FULLY_CONNECTED with dense weights. Data sheet: tflq/engine/kernels/fully_connected/reference.py."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.mapped import release
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.contraction import (
    Output,
    accumulator_16x8,
    centre,
    float64_multipliers,
    output,
    read_bias_type,
    require_codes,
    require_quantized,
    require_symmetric,
)
from tflq.engine.kernels.families.matrix_products import Products, products
from tflq.engine.kernels.families.operand_rows import PlainRows
from tflq.engine.kernels.families.ordered_products import OrderedProduct
from tflq.engine.kernels.families.ordered_sums import multiply
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.fully_connected.shapes import fixed_point_reals, output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.stages import OutputStage
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Elements of weights that are turned at a time.
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    shape: Shape  # of the output
    input_zero_point: ZeroPoint  # LSB of input
    weight_zero_point: ZeroPoint  # LSB of weights
    output: Output
    codes: np.dtype[Any]  # of the input
    weights: Array | None  # as the file has them; None if they or the bias are not constant, or nothing is made
    products: Products | None = field(init=False)  # bound to all of the above

    def __post_init__(self) -> None:
        object.__setattr__(self, "products", None if self.weights is None else _bind(self, self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    shape: Shape  # of the output
    clamp: NumberClamp
    weights: Array  # (K, O), or empty where they are not constant
    product: OrderedProduct | None = None  # with constant weights, where tiles can make it


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the dense stage's multipliers in float64 throughout; 16-bit weights have their own stage."""
    shape = output_shape(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    require_quantized(node, x, w)
    require_codes(node, x, w)
    if w.type in (TensorType.INT4, TensorType.INT2):
        require_symmetric(node, w)
    accumulator: np.dtype[Any] = np.dtype(np.int32)
    if x.type == TensorType.INT16:
        for operand in (x, y):
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
        if w.type == TensorType.INT16:
            read_bias_type(node, bias)
            accumulator = np.dtype(np.int64)
        else:
            accumulator = accumulator_16x8(node, bias)
    stage = _stage(node, arithmetic, accumulator, (x, w, y), bias)
    is_empty = w.shape[1] == 0 or 0 in shape
    is_constant = w.value is not None and (bias is None or bias.value is not None)
    data = OpData(
        shape=shape,
        input_zero_point=x.zero_point,
        weight_zero_point=w.zero_point,  # 0 where there are several
        output=output(node, stage, y, None if bias is None else bias.value, w.shape[0], accumulator),
        codes=CARRIER[x.type],
        weights=w.value if is_constant and not is_empty else None,
    )
    if is_empty:
        return Prepared((shape,), data, eval_empty)
    return Prepared((shape,), data, eval_quantized if is_constant else eval_variable)


def _stage(
    node: Node,
    arithmetic: Arithmetic,
    accumulator: np.dtype[Any],
    operands: tuple[Operand, Operand, Operand],
    bias: Operand | None,
) -> OutputStage:
    fixed_point = fixed_point_reals(node, arithmetic, operands, bias)
    x, w, y = operands
    if w.type == TensorType.INT16:
        return arithmetic.requantize_wide(fixed_point)
    assert w.quantization is not None  # require_quantized saw to it
    real = arithmetic.dense_real(float64_multipliers(x, w.quantization.scale, y, w.shape[0]), fixed_point)
    return (arithmetic.requantize_dense if accumulator == np.int32 else arithmetic.requantize_dense_wide)(real)


def _bind(data: OpData, w: Array) -> Products:
    """Return the products with the weights (O, K), centred, as a matrix (K, O)."""
    count = int(np.prod(data.shape[:-1]))
    rows = PlainRows(data.input_zero_point, count, w.shape[1])
    return products(rows, [centre(w, data.weight_zero_point).T], data.codes, count, data.output)


@filling(lambda data, *_: (data.shape, data.output.pipeline.dtype))
def eval_quantized(data: OpData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Source: FullyConnected, FullyConnectedPerChannel. Rounding: by the stage. Overflow: the accumulator wraps."""
    assert data.products is not None  # bound with the weights
    return data.products.into(x, out.reshape(-1, data.shape[-1]))


def eval_variable(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Bind weights or bias that another operator computed, then evaluate as eval_quantized."""
    target = data.output.with_bias(bias, w.shape[0])
    return eval_quantized(replace(data, output=target, weights=w), x, w)


def eval_empty(data: OpData | FloatData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Return zeros, as the source does if there is nothing to add up or nothing to make."""
    dtype = np.dtype(np.float32) if isinstance(data, FloatData) else data.output.pipeline.dtype
    return np.zeros(data.shape, dtype)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the clamp and the weights with units innermost."""
    shape = output_shape(node)
    w = node.input(1)
    weights = np.zeros((0, 0), np.float32) if w.value is None else units_last(w.value)
    data = FloatData(shape, float_range(node), weights)
    if w.shape[1] == 0 or 0 in shape:
        return Prepared((shape,), data, eval_empty)
    if w.value is not None:
        data = replace(data, product=OrderedProduct.of_rows(weights, prod(shape[:-1])))
    return Prepared((shape,), data, eval_float if w.value is not None else eval_float_variable)


def units_last(w: Array) -> Array:
    """Return weights (O, K) as a new array (K, O). Pages of a mapped file are given back as they are read."""
    out = np.empty(w.shape[::-1], w.dtype)
    step = max(1, _BLOCK // max(1, w.shape[1]))
    for first in range(0, len(w), step):
        part = w[first : first + step]
        out[:, first : first + step] = part.T
        release(part)
    return out


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float(data: FloatData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Source: FullyConnected (float). Rounding: product and sum apart, in order of k, bias last."""
    length, units = data.weights.shape
    sums = out.reshape(-1, units)
    rows = np.ascontiguousarray(x).reshape(-1)[: sums.shape[0] * length].reshape(-1, length)
    added = np.zeros(units, np.float32) if bias is None else np.ascontiguousarray(bias).reshape(-1)
    if data.product is not None:
        return data.product.into(rows[None, None], added, data.clamp, sums)
    return multiply.bound(rows, data.weights, added, *data.clamp, sums)


def eval_float_variable(data: FloatData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Evaluate with weights that another operator computed."""
    return eval_float(replace(data, weights=units_last(w)), x, w, bias)


_VERSIONS = (1, 14)
_INT8_WEIGHTS = "int8|int4|int2"

ROWS = (
    Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", prepare_float, _VERSIONS),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", prepare_quantized, _VERSIONS),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16", prepare_quantized, _VERSIONS),
    Kernel("FULLY_CONNECTED", f"int8 {_INT8_WEIGHTS} int32? -> int8", prepare_quantized, _VERSIONS),
    Kernel("FULLY_CONNECTED", f"int16 {_INT8_WEIGHTS} int32|int64? -> int16", prepare_quantized, _VERSIONS),
    Kernel("FULLY_CONNECTED", "int16 int16 int32|int64? -> int16", prepare_quantized, _VERSIONS),
)
