"""FULLY_CONNECTED: products with weights in each form that a file stores.

Shapes and multipliers of FULLY_CONNECTED, checked. Operands: tflq/engine/kernels/fully_connected.py.

FULLY_CONNECTED with dense weights. Data sheet: tflq/engine/kernels/fully_connected.py.

FULLY_CONNECTED, hybrid: rows of floats, quantized on the way, times narrow weights.

| operand | shape                | types                    | quantization                               |
|---------|----------------------|--------------------------|--------------------------------------------|
| x       | any, >= B * K values | float32                  | none                                       |
| w       | O, K                 | int8, uint8, int4, int2  | per tensor or along O; 4, 2 bits: symmetric |
| bias    | O, optional          | float32                  |                                            |
| y       | B, O, or x's and O   | float32                  | none                                       |

Options: keep_num_dims, asymmetric_quantize_inputs, fused activation (all of the schema's, TANH and SIGN_BIT too).
Weights are read as int8; their zero points are not looked at. Weights without scales, and those with scales for every
block, have scale 0 here: the output is the bias. Sums of the weights' rows are those of the first run that needs them,
even where another operator computes new weights.
Source: LiteRT 2.3, fully_connected.cc PrepareImpl, EvalHybridDense.

FULLY_CONNECTED of floats by four-bit weights under the optimized resolver, on x86-64.

| operand | shape            | types   | quantization                                             |
|---------|------------------|---------|----------------------------------------------------------|
| x       | any, >= B * K    | float32 | none                                                     |
| w       | O, K             | int4    | per tensor, along O, or scales (O, K / block) in float16 |
| bias    | O, optional      | float32 |                                                          |
| y       | B, O, or x's, O  | float32 | none                                                     |

Options: keep_num_dims, fused activation (all of the schema's). Constant weights of at least 4 units and an even K of
at least 32 have kernels of their own; all others go as fully_connected_dense.py. Per tensor and along O, weights are
packed, and rows are quantized symmetrically, regardless of the option. With scales of blocks, rows are quantized
asymmetrically, and the activation function is not applied. Source: LiteRT 2.3, fully_connected.cc PrepareImpl,
EvalHybridDense4Bit, EvalBlockwise4Bit.

FULLY_CONNECTED with shuffled weights: blocks of four units by sixteen inputs, for the cells of old LSTMs.

| operand   | shape              | types | quantization              |
|-----------|--------------------|-------|---------------------------|
| x         | B * K values       | uint8 | per tensor                |
| w         | O, K               | uint8 | per tensor                |
| bias      | O                  | int32 | its scale is checked      |
| y         | B, O, or x's and O | int16 | per tensor                |
| workspace | B * K values       | uint8 | not looked at             |

B is 1 or 4, K a multiple of 16, O of 4. Options: keep_num_dims, fused activation. Weights are stored with their top bit
flipped; all zero points count as 128, the output's as 0. The workspace holds the input with its top bit flipped, for
B = 4 shuffled by sixteens too.
Source: LiteRT 2.3, fully_connected.cc EvalShuffledQuantized; reference/fully_connected.h ShuffledFullyConnected.

FULLY_CONNECTED with weights that are stored sparsely.

| operand | shape                | types                | quantization                                        |
|---------|----------------------|----------------------|-----------------------------------------------------|
| x       | any, >= B * K values | float32, int8        | int8: per tensor                                    |
| w       | O, K                 | float32, int8, uint8 | int8: per tensor or along O; zero point 0           |
| bias    | O, optional          | float32, int32       | a per-tensor scale is checked                       |
| y       | B, O, or x's and O   | as x                 | int8: per tensor                                    |

Float weights may be stored in any way: they are dense when they are multiplied. int8 weights (with float activations
uint8 too, read as int8) are stored as blocks of sixteen along K, in rows; with float activations no row and no position
goes beyond 255 blocks. Options: as FULLY_CONNECTED, and hybrid FULLY_CONNECTED.
Source: LiteRT 2.3, fully_connected.cc EvalFloat, EvalQuantized, EvalSparseHybridImpl, PopulateLedgerData;
sparse_ops/fully_connected.h FullyConnectedSparseWeight, FullyConnectedSparseWeight1x16; neon_tensor_utils.cc
NeonSparseMatrixBatchVectorMultiplyAccumulate1x16; sse_tensor_utils.cc SseSparseMatrixBatchVectorMultiplyAccumulate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.images import release
from tflq.engine.jit.pieces import in_steps
from tflq.engine.kernels.checks import require_rank, require_zero_point_zero
from tflq.engine.kernels.families.activation import LIMITS, code_range, float_range
from tflq.engine.kernels.families.contraction import (
    Output,
    PlainRows,
    Products,
    accumulator_16x8,
    bias_of,
    centre,
    code_span,
    float64_multipliers,
    output,
    per_tensor_multiplier,
    products,
    read_bias_type,
    require_codes,
    require_quantized,
    require_symmetric,
)
from tflq.engine.kernels.families.hybrid import HybridSums, block_scales, is_blockwise, read_as_int8, unit_scales
from tflq.engine.kernels.families.ordered import OrderedProduct, multiply
from tflq.engine.kernels.families.recurrent.parts import NONE, Inputs, activate, apply, bind, function_of
from tflq.engine.kernels.kernel import (
    Call,
    CalledSubgraphs,
    Kernel,
    Node,
    Operand,
    Prepared,
    Shape,
    filling,
    once_known,
    valid,
)
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.dynamic_range import (
    DEPTH,
    ByteMatrix,
    Integers,
    PackedMatrix,
    QuantizedRows,
    add_quantized,
    are_finite,
    blocks,
    quantize_rows,
)
from tflq.engine.numerics.products import FEW, Contraction, accumulators_int32, holds_zeros, is_zero
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, Reals, repeat
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, Record, TensorType
from tflq.typing import Array

#: FullyConnectedOptionsWeightsFormat of the schema.
PLAIN, SHUFFLED = 0, 1
#: The version of sparse weights, which XNNPACK never takes. Source: LiteRT 2.3 VisitNode.
SPARSE_VERSION = 8


def output_shape(node: Node, weights_format: int = PLAIN) -> Shape:
    """Return the shape of the output, checked against weights, their format and bias."""
    said = int(node.options.get("weights_format", PLAIN))
    node.check(said == weights_format, "weights format (1: shuffled)", expected=weights_format, got=said)
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    _check_activation(node, x, w)
    require_rank(node, w, 2)
    units, length = w.shape
    keep = bool(node.options.get("keep_num_dims", 0))
    elements = int(np.prod(x.shape, dtype=np.int64))
    if bias is not None:
        size = int(np.prod(bias.shape))
        node.check(size == units, "bias length", bias, expected=units, got=size)
    if keep:
        node.check(len(x.shape) > 0 and x.shape[-1] == length, "last dimension", x, expected=length, got=x.shape)
        return (*x.shape[:-1], units)
    if length == 0:
        return int(np.prod(x.shape[:-1], dtype=np.int64)), units
    return elements // length, units  # elements beyond the last whole row are never read


def of_whole_rows(row: Kernel) -> Kernel:
    """Return the row of XNNPACK, which fails to prepare an input with elements beyond the last whole row.

    Observed in LiteRT 1.4, 2.1 and 2.3; TensorFlow Lite up to 2.14 and LiteRT 1.0 drop those elements. Source: XNNPACK
    subgraph/fully-connected.c reshape_fully_connected_operator.
    """

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, length = node.input(0), node.input(1).shape[-1]
        elements = int(np.prod(x.shape, dtype=np.int64))
        if length and elements % length:
            node.reject("XNNPACK asks for whole rows", x, expected=f"a multiple of {length} elements", got=elements)
        return row.prepare(node, arithmetic)

    return replace(row, prepare=prepare)


def _check_activation(node: Node, x: Operand, w: Operand) -> None:
    """Refuse fused activations that are no clamp, except with narrow weights of floats. Source: PrepareImpl."""
    if x.type == TensorType.FLOAT32 and w.type != TensorType.FLOAT32:
        return
    function = int(node.options.get("fused_activation_function", 0))
    if function not in LIMITS:
        node.refuse("fused activation function", expected="NONE, RELU, RELU_N1_TO_1 or RELU6", got=function)


def fixed_point_reals(
    node: Node, arithmetic: Arithmetic, operands: tuple[Operand, Operand, Operand], bias: Operand | None
) -> Reals:
    """Return the reals of prepare's multipliers, one a unit, for x, w and y; few forms use them, all check them."""
    x, w, y = operands
    units = w.shape[0]
    assert w.quantization is not None  # require_quantized saw to it
    if len(w.quantization.scale) <= 1:
        return np.full(units, per_tensor_multiplier(node, arithmetic, x, w, bias, y))
    node.check(x.type != TensorType.UINT8, "uint8 activations with per-unit weight scales", w)
    dimension, count = w.quantization.quantized_dimension, len(w.quantization.scale)
    node.check(dimension == 0, "quantized dimension", w, expected=0, got=dimension)
    node.check(count == units, "number of weight scales", w, expected=units, got=count)
    return float64_multipliers(x, w.quantization.scale, y, units)


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

    def bound(self, w: Array) -> FloatData:
        """Return the constants with the weights, units innermost."""
        weights = units_last(w)
        return replace(self, weights=weights, product=OrderedProduct.of_rows(weights, prod(self.shape[:-1])))


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
        require_zero_point_zero(node, x, y)
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
    data = FloatData(shape, float_range(node), np.zeros((0, 0), np.float32))
    if w.shape[1] == 0 or 0 in shape:
        return Prepared((shape,), data, eval_empty)
    if w.value is None:
        return Prepared((shape,), data, eval_float_variable)
    return Prepared((shape,), data.bound(w.value), eval_float)


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


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float_variable(data: FloatData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Evaluate with weights that another operator computed."""
    return once_known(w, lambda: eval_float.bind(data.bound(w), out, x, w, bias))


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


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    shape: Shape  # of the output
    length: int  # K
    matrix: Callable[[Inputs], ByteMatrix]
    is_constant: bool  # whether it is always the same
    asymmetric: bool
    activation: int
    quantize: Callable[[Array, bool], QuantizedRows]
    integers: Integers | None  # the constant matrix for compiled code, where that quantizes the rows as `quantize`


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one scale a unit, if there are several."""
    return prepare_with(node, ByteMatrix.of, quantize_rows)


def prepare_with(
    node: Node,
    matrix_of: Callable[[Array, np.float32 | Array], ByteMatrix],
    quantize: Callable[[Array, bool], QuantizedRows],
) -> Prepared:
    """Return a copy with another matrix or other quantized rows."""
    shape = output_shape(node)
    w = node.input(1)
    if w.type in (TensorType.INT4, TensorType.INT2):
        require_symmetric(node, w)
    scale = unit_scales(node, w, w.shape[0])

    def build(inputs: Inputs) -> ByteMatrix:
        weights = inputs[1]
        assert weights is not None
        matrix, count = matrix_of(weights, scale), math.prod(shape[:-1])
        if not w.is_constant or count <= FEW:
            return matrix
        products = HybridSums.of_rows(np.ascontiguousarray(weights).view(np.int8), count)
        return replace(matrix, tiles=products.of_codes)

    asymmetric = bool(node.options.get("asymmetric_quantize_inputs", 0))
    if w.shape[1] == 0:
        return Prepared((shape,), shape, eval_empty_hybrid)
    matrix, integers = bind(node, (1,), build), None
    if w.is_constant and matrix_of == ByteMatrix.of and quantize is quantize_rows:
        integers = matrix(()).integers() if math.prod(shape) <= FEW * shape[-1] else None
    data = HybridData(shape, w.shape[1], matrix, w.is_constant, asymmetric, function_of(node), quantize, integers)
    return Prepared((shape,), data, evaluate_alone if w.is_constant else evaluate, alone=w.is_constant)


def evaluate(data: HybridData, session: CalledSubgraphs, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalHybridDense. Rounding: sum to float32, times the product of the scales, added to the bias."""
    out = np.zeros(data.shape, np.float32)
    if bias is not None:
        out[...] = bias.reshape(-1)
    units = data.shape[-1]
    if out.size and not is_zero(x):
        rows = np.ascontiguousarray(x).reshape(-1)[: out.size // units * data.length].reshape(-1, data.length)
        matrix = data.matrix((x, w, bias))
        if not data.is_constant:
            matrix = replace(matrix, row_sums=session.memory.setdefault(data, matrix.row_sums))
        matrix.accumulate(data.quantize(rows, data.asymmetric), out.reshape(-1, units))
    return activate(data.activation, out, out)


def _evaluate_once(data: HybridData, x: Array, w: Array, bias: Array | None = None) -> Array:
    session: Any = None  # not looked at where weights are constant
    return evaluate(data, session, x, w, bias)


@filling(lambda data, *_: (data.shape, np.float32), once=_evaluate_once)
def evaluate_alone(data: HybridData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Evaluate with constant weights."""
    units = data.shape[-1]
    if data.integers is None or not out.size:
        return lambda: np.copyto(out, _evaluate_once(data, x, w, bias))
    given, undefined = x.reshape(1, -1), np.zeros(1, np.int8)
    rows = x.reshape(-1)[: out.size // units * data.length].reshape(-1, data.length)
    start = np.zeros(0, np.float32) if bias is None else bias.reshape(-1)
    options = data.asymmetric, data.activation, out.reshape(-1, units), undefined
    return partial(_check, _multiply.bound(given, rows, start, data.integers, *options), undefined)


def _check(multiply: Call, undefined: Array) -> None:
    multiply()
    if undefined[0]:
        undefined[0] = 0
        raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")


@writes("out", "undefined")
@in_steps(lambda given, rows, start, integers, *_: rows.size * integers[0].shape[0])
@compiled
def _multiply(
    given: Array,
    rows: Array,
    start: Array,
    integers: Any,
    asymmetric: bool,
    activation: Int,
    out: Array,
    undefined: Array,
) -> None:
    """Prepare guarantees: `given` is (1, S), `rows` (R, K) of these, `start` (N) or empty, `integers` are those of a
    matrix (N, K), `out` is (R, N).
    """
    for r in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[r, n] = start[n] if start.size > 0 else np.float32(0)
    if not holds_zeros(given):
        if not are_finite(rows):
            undefined[0] = 1
            return
        add_quantized(rows, asymmetric, integers[0], integers[1], integers[2], integers[3], out)
    if activation != NONE:
        for r in range(out.shape[0]):
            for n in range(out.shape[1]):
                out[r, n] = apply(activation, out[r, n])


def eval_empty_hybrid(shape: Shape, session: CalledSubgraphs, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Return zeros, as the source does for weights without columns."""
    return np.zeros(shape, np.float32)


HYBRID_ROWS = (
    Kernel("FULLY_CONNECTED", "float32 int8|uint8|int4|int2 float32? -> float32", prepare, (1, 14), session=True),
)


#: Units that the packed kernel computes at a time.
WIDTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class PackedData:
    """Constants of packed weights."""

    shape: Shape  # of the output
    length: int  # K
    matrix: PackedMatrix
    activation: int


@dataclass(frozen=True, slots=True, eq=False)
class BlockData:
    """Constants of weights with scales of blocks."""

    shape: Shape  # of the output
    weights: Array  # (O, K)
    scales: Array  # (O, blocks)


def is_packed(node: Node, shape: Shape) -> bool:
    """Return whether the operator has a kernel of its own."""
    w, rows = node.input(1), prod(shape[:-1])
    length = prod(node.input(0).shape) // rows if rows else 0
    return w.is_constant and length % 2 == 0 and length >= DEPTH and w.shape[0] >= WIDTH


def prepare_packed(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Choose by shape and quantization. Refuse packed weights without scales, as the runtime does."""
    shape, w = output_shape(node), node.input(1)
    if w.shape[1] == 0 or not is_packed(node, shape):
        return prepare(node, arithmetic)
    require_symmetric(node, w)
    assert w.value is not None  # is_packed saw to it
    if is_blockwise(w):
        scales, _ = block_scales(node, w, w.shape[1])
        return Prepared((shape,), BlockData(shape, w.value, scales), eval_blocks)
    node.check(w.is_quantized, "scale", w, expected="one, or one a unit", got="none")
    scale = np.broadcast_to(unit_scales(node, w, w.shape[0]), w.shape[0])
    data = PackedData(shape, w.shape[1], PackedMatrix.of(w.value, scale, arithmetic.int4_offset), function_of(node))
    return Prepared((shape,), data, eval_packed)


def _rows(x: Array, shape: Shape, length: int) -> Array:
    """Return the rows that the output has; elements beyond the last whole row are not read."""
    count = prod(shape[:-1])
    return np.ascontiguousarray(x).reshape(-1)[: count * length].reshape(count, length)


def eval_packed(data: PackedData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalHybridDense4Bit. Rounding: as PackedMatrix."""
    out = data.matrix(_rows(x, data.shape, data.length), None if bias is None else bias.reshape(-1))
    return activate(data.activation, out).reshape(data.shape)


def eval_blocks(data: BlockData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalBlockwise4Bit. Rounding: as blocks, then times the row's scale, then plus the bias."""
    rows = quantize_rows(_rows(x, data.shape, data.weights.shape[1]), True)
    out = blocks(rows.codes, rows.zero_point, data.weights, data.scales) * rows.scale[:, None]
    return (out if bias is None else out + bias.reshape(-1)).reshape(data.shape)


KERNELS = valid(
    opt("litert-1.4", cpu="x86-64"),
    Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", prepare_packed, (1, 14)),
)


_UNITS, _INPUTS = 4, 16
_TOP_BIT = np.uint8(0x80)


@dataclass(frozen=True, slots=True, eq=False)
class ShuffledData:
    """Constants."""

    shape: Shape  # of the output
    workspace: Shape
    products: Contraction
    output: Output


def prepare_shuffled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with the fixed-point multiplier of all uint8 forms."""
    shape = output_shape(node, SHUFFLED)
    x, w, bias, (y, workspace) = node.input(0), node.input(1), node.input(2), node.outputs
    require_quantized(node, x, w)
    units, length = w.shape
    batch = math.prod(shape[:-1])
    if batch not in (1, 4) or length % _INPUTS or units % _UNITS or not length:
        raise UndefinedResultError(node.op, f"shuffled weights {w.shape} for {batch} rows")
    fits = math.prod(workspace.shape) == batch * length
    node.check(fits, "number of elements", workspace, expected=batch * length, got=workspace.shape)
    stage = arithmetic.requantize(fixed_point_reals(node, arithmetic, (x, w, y), bias))
    blocks = node.constant(1).view(np.int8).reshape(units // _UNITS, length // _INPUTS, _UNITS, _INPUTS)
    data = ShuffledData(
        shape=shape,
        workspace=workspace.shape,
        products=Contraction.of(blocks.swapaxes(1, 2).reshape(units, length).T, (-128, 127)),
        output=Output(
            repeat(bias_of(node.constant(2), units, np.int32)),
            OutputPipeline(stage, ZeroPoint(0), code_range(node, y, np.int16), np.dtype(np.int16)),
        ),
    )
    return Prepared((shape, workspace.shape), data, evaluate_shuffled)


def evaluate_shuffled(data: ShuffledData, x: Array, w: Array, bias: Array) -> tuple[Array, Array]:
    """Source: ShuffledFullyConnected. Rounding: by the stage. Overflow: the accumulator wraps."""
    out = np.empty(data.shape, np.int16)
    length, units = data.products.shape
    rows = (np.ascontiguousarray(x).reshape(-1)[: out.size // units * length] ^ _TOP_BIT).reshape(-1, length)
    sums = accumulators_int32(data.products(rows.view(np.int8).astype(data.products.real)))
    data.output.into(sums, out.reshape(-1, units))
    shuffled = rows.reshape(len(rows), -1, _INPUTS).swapaxes(0, 1)
    return out, np.ascontiguousarray(shuffled).reshape(data.workspace)


SHUFFLED_ROWS = (Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16 uint8", prepare_shuffled, (1, 14)),)


_SPARSE_BLOCK = 16
_DENSE, _COMPRESSED = 0, 1

#: The largest value of a byte of the hybrid form's ledger.
_LEDGER_LARGEST = 255


@dataclass(frozen=True, slots=True, eq=False)
class SparseData:
    """Constants of the int8 form."""

    shape: Shape  # of the output
    input_zero_point: ZeroPoint  # LSB of input
    products: Contraction
    lowest_pairs: Contraction | None  # 65536 where both weights of a pair are -128; None if no pair is
    output: Output


@dataclass(frozen=True, slots=True, eq=False)
class SparseHybridData:
    """Constants of the form with float activations."""

    shape: Shape  # of the output
    matrix: ByteMatrix
    row_sums: Array  # of the weights, int32
    asymmetric: bool
    activation: int


def check_blocks(node: Node, largest: int | None = None) -> Array:
    """Return the weights: rows of blocks of sixteen, at most `largest` blocks a row and no later position."""
    w = node.input(1)
    sparsity = w.sparsity
    assert sparsity is not None  # rows of this table are found for such weights only
    units, length = w.shape
    levels: list[Record] = list(sparsity["dim_metadata"])
    formats = [int(level["format"]) for level in levels]
    order = np.asarray(sparsity["traversal_order"]).tolist()
    blocked = np.asarray([] if sparsity["block_map"] is None else sparsity["block_map"]).tolist()
    rows_of_blocks = formats == [_DENSE, _COMPRESSED, _DENSE] and order == [0, 1, 2] and blocked == [1]
    node.check(rows_of_blocks, "sparse format", w, expected="rows of blocks along K", got=(formats, order, blocked))
    sizes = int(levels[0]["dense_size"]), int(levels[2]["dense_size"])
    node.check(
        sizes == (units, _SPARSE_BLOCK) and length % _SPARSE_BLOCK == 0,
        "block",
        w,
        expected=(units, _SPARSE_BLOCK),
        got=sizes,
    )
    segments, indices = (
        np.asarray(levels[1][field]["values"]).astype(np.int64) for field in ("array_segments", "array_indices")
    )
    counts = np.diff(segments)
    within = np.ones(len(indices), bool)
    within[segments[:-1][counts > 0]] = False  # the first block of a row follows nothing
    node.check(bool((np.diff(indices, prepend=0)[within] > 0).all()), "blocks of a row are not in order", w)
    if largest is not None and len(indices):
        worst = max(int(counts.max()), int(indices.max()))
        node.check(worst <= largest, "blocks", w, expected=f"at most {largest}", got=worst)
    return read_as_int8(node.constant(1))


def prepare_quantized_sparse(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with fixed-point multipliers, unlike dense weights."""
    shape = output_shape(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    require_quantized(node, x, w)
    require_zero_point_zero(node, w)
    weights = check_blocks(node)
    pairs = both_lowest(weights)
    stage = arithmetic.requantize(fixed_point_reals(node, arithmetic, (x, w, y), bias))
    data = SparseData(
        shape=shape,
        input_zero_point=x.zero_point,
        products=Contraction.of(weights.T, code_span(x)),
        lowest_pairs=Contraction.of(pairs.T.astype(np.int32) * 65536, (0, 1)) if pairs.any() else None,
        output=output(node, stage, y, None if bias is None else node.constant(2), w.shape[0], np.int32),
    )
    return Prepared((shape,), data, eval_quantized_sparse)


def both_lowest(codes: Array) -> Array:
    """Return (R, K / 2) flags: code k and code k + 8 of a block are both -128."""
    lowest = (codes == -128).reshape(len(codes), -1, 2, _SPARSE_BLOCK // 2)
    return np.asarray(lowest.all(axis=2)).reshape(len(codes), -1)


def eval_quantized_sparse(data: SparseData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: ...1x16. Rounding: by the stage. Overflow: sums wrap; the sum of a pair's products wraps in 16 bits."""
    out = np.empty(data.shape, np.int8)
    length, units = data.products.shape
    rows = np.ascontiguousarray(x).reshape(-1)[: out.size // units * length].reshape(-1, length)
    sums = accumulators_int32(data.products(centre(rows, data.input_zero_point).astype(data.products.real)))
    if data.lowest_pairs is not None:
        sums -= accumulators_int32(data.lowest_pairs(both_lowest(rows).astype(data.lowest_pairs.real)))
    data.output.into(sums, out.reshape(-1, units))
    return out


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one scale a unit, if there are several."""
    shape = output_shape(node)
    w = node.input(1)
    weights = check_blocks(node, _LEDGER_LARGEST)
    data = SparseHybridData(
        shape=shape,
        matrix=ByteMatrix.of(weights, unit_scales(node, w, w.shape[0])),
        row_sums=weights.sum(axis=1, dtype=np.int32),
        asymmetric=bool(node.options.get("asymmetric_quantize_inputs", 0)),
        activation=function_of(node),
    )
    return Prepared((shape,), data, eval_hybrid)


def eval_hybrid(data: SparseHybridData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalSparseHybridImpl. Rounding: zero points leave in float32, before the sums are added."""
    out = np.zeros(data.shape, np.float32)
    if bias is not None:
        out[...] = bias.reshape(-1)
    units, length = data.matrix.shape
    if out.size and not is_zero(x):
        sums = out.reshape(-1, units)
        rows = quantize_rows(
            np.ascontiguousarray(x).reshape(-1)[: len(sums) * length].reshape(-1, length), data.asymmetric
        )
        per_unit = isinstance(data.matrix.scale, np.ndarray)
        scale = (rows.scale if per_unit else rows.scale * data.matrix.scale)[:, None]
        unit_scale = data.matrix.scale if per_unit else np.float32(1)
        if data.asymmetric:
            shift = scale * rows.zero_point.astype(np.float32)[:, None] * unit_scale
            sums -= shift * data.row_sums.astype(np.float32)
        sums += data.matrix.sums(rows.codes).astype(np.float32) * (scale * unit_scale)
    return activate(data.activation, out, out)


_WEIGHTS = (1,)

SPARSE_ROWS = (
    Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", prepare_float, _VERSIONS, sparse=_WEIGHTS),
    Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", prepare_quantized_sparse, _VERSIONS, sparse=_WEIGHTS),
    Kernel("FULLY_CONNECTED", "float32 int8|uint8 float32? -> float32", prepare_hybrid, _VERSIONS, sparse=_WEIGHTS),
)
