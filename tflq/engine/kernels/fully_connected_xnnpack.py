"""FULLY_CONNECTED by XNNPACK. Data sheets: tflq/engine/kernels/fully_connected.py, hybrid.py.

FULLY_CONNECTED of floats by XNNPACK, with weights of four bits and a scale for every block of inputs.

| operand | type, shape | quantization |
|---|---|---|
| x | float32 (..., K) | rows asymmetrically when it runs |
| weights | int4 (O, K), constant | scales (O, K / block) in a float16 tensor, read as bfloat16 |
| bias | float32 (O), constant, or none | |
| y | float32 (..., O) | |

Options: as kernels/fully_connected_dense.py. Weights of 2 or 8 bits with blocks of such a size are taken and then
refused, and so are scales that are not positive.
Source: LiteRT 2.3 xnnpack_delegate.cc GetXNNPackDatatype, CheckFp16Scale; XNNPACK's qd8-f32-qb4w gemm.

8-bit codes: the reference's sums, scaled by a float32 multiplier. Floats and narrow weights: rows quantized
asymmetrically, regardless of the option. Source: LiteRT 2.3 xnnpack_delegate.cc VisitFullyConnectedNode,
CheckTensorFilterType; XNNPACK's qd8-f32-qc8w and qc4w gemm.

FULLY_CONNECTED of float32 by XNNPACK. Operands and options: tflq/engine/kernels/fully_connected.py.

A chain of fused multiply-adds from the bias on.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitFullyConnectedNode; XNNPACK's fully_connected_nc_f32, f32-gemm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.delegation import (
    UNCLAIMED,
    delegate,
    has_bias_scales,
    has_shape,
    is_in_file,
    is_quantized,
    is_static,
    meeting,
    needs,
    of_no_narrower_bias,
    of_one_width,
    ranked,
    result,
)
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.families.hybrid import HybridSums, check_quantized, is_blockwise, multiply_dynamically
from tflq.engine.kernels.families.ordered import FusedProduct, open_range
from tflq.engine.kernels.families.xnnpack import gemm, rescaled, with_fitting_bias
from tflq.engine.kernels.fully_connected_dense import SPARSE_VERSION, of_whole_rows, output_shape, prepare_quantized
from tflq.engine.kernels.kernel import (
    Call,
    Kernel,
    Node,
    Operand,
    Prepared,
    Shape,
    filling,
    in_turn,
    once_known,
    promising,
    valid,
)
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.dynamic_range import (
    Blocks,
    Rescale,
    multiply_blocks,
    multiply_quantized,
    quantize_centred,
    rescale_apart,
    rescale_fused,
)
from tflq.engine.numerics.estimates import in_bfloat16
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Blocks have a multiple of this number of inputs.
_LEAST = 32


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    weights: Blocks
    lanes: int
    clamp: NumberClamp


def takes_xnnpack_blocks(w: Operand) -> bool:
    """Return whether the delegate takes weights with scales of blocks, regardless of whether XNNPACK can run them."""
    details = None if w.quantization is None else w.quantization.details
    return details is not None and details.table == "BlockwiseQuantization" and int(details["block_size"]) % _LEAST == 0


def check(node: Node, w: Operand, block: int) -> None:
    """Refuse weights for which LiteRT does not prepare the model: it has taken them by then.

    Source: xnnpack_delegate.cc CheckTensorFilterType, GetXNNPackDatatype.
    """
    scales = w.block_scales
    node.check(w.type == TensorType.INT4, "type of weights with scales of blocks", w, expected="int4", got=w.type.label)
    if scales is None or scales.dtype != np.float16:
        node.refuse("scales of blocks that are not float16", w)
    positive = bool(scales.size) and bool(np.all(np.isfinite(scales) & (scales > 0)))
    node.check(positive, "scales of blocks that are not positive and finite", w)
    count = int(np.prod(w.shape)) // scales.size
    node.check(block == count, "block size", w, expected=count, got=block)


def prepare_xnnpack_blocks(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an unknown order of sums, and what XNNPACK refuses, such as blocks that do not divide K."""
    shape, w = output_shape(node), node.input(1)
    assert w.quantization is not None  # takes saw to both
    assert w.quantization.details is not None
    block, (units, length) = int(w.quantization.details["block_size"]), w.shape
    check(node, w, block)
    assert w.block_scales is not None
    assert w.value is not None
    if arithmetic.xnnpack_blocks is None:
        node.refuse("the order in which XNNPACK adds sums of blocks is not known here", w)
    node.check(length % block == 0, "block size", w, expected=f"a divisor of {length}", got=block)
    scales = in_bfloat16(w.block_scales.reshape(units, length // block).astype(np.float32))
    weights = Blocks.of(w.value, scales)
    return Prepared((shape,), OpData(shape, weights, arithmetic.xnnpack_blocks, float_range(node)), evaluate)


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate(data: OpData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Rounding: as `multiply_blocks`."""
    weights, (length, units) = data.weights, data.weights.codes.shape
    rows, undefined = np.ascontiguousarray(x).reshape(-1, length), np.zeros(1, np.int8)
    codes, row, point = np.empty(rows.shape, np.int16), np.empty(len(rows), np.float32), np.empty(len(rows), np.int32)
    quantize = quantize_centred.bound(rows, codes, row, point, undefined)
    multiply = multiply_blocks.bound(
        codes,
        row,
        point,
        weights.codes,
        weights.scales,
        weights.packed,
        bias_of(bias, units, np.float32),
        weights.sums(data.lanes),
        *data.clamp,
        out.reshape(-1, units),
    )
    return in_turn([partial(check_quantized, quantize, undefined), multiply])


#: Weights of 4 and 2 bits fill whole bytes.
VALUES_A_BYTE = {TensorType.INT4: 2, TensorType.INT2: 4}


def has_weight_scales(w: Operand) -> bool:
    """Return whether weights have one scale, or several along the units. Source: CheckTensorFilterType."""
    q = w.quantization
    if q is None or len(q.scale) == 0:
        return False
    if w.type == TensorType.UINT8:
        return is_quantized(w)
    if w.type == TensorType.INT2:
        return len(q.scale) == w.shape[0] and q.quantized_dimension == 0
    return len(q.scale) == 1 or q.quantized_dimension == 0


def is_plain(node: Node) -> bool:
    """Return whether weights are constant, in whole bytes, and not stored sparsely."""
    w = node.input(1)
    is_whole = w.is_constant and has_shape(w, 2, 2) and w.shape[1] % VALUES_A_BYTE.get(w.type, 1) == 0
    return node.version != SPARSE_VERSION and is_whole


@meeting(
    is_plain,
    needs(0, is_quantized),
    needs(1, has_weight_scales, lambda w: w.type == TensorType.UINT8 or w.zero_point == 0),
    needs(2, has_bias_scales, is_in_file),
    result(is_quantized),
)
def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, and signed weights have zero point 0."""
    return True


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    x, w = node.input(0), node.input(1)
    if w.type == TensorType.INT4:
        check_sums(node)
    return rescaled(
        node, prepare_quantized(with_fitting_bias(node), arithmetic), gemm(arithmetic, x, w), x, w, w.shape[0]
    )


def by_channel(node: Node) -> bool:
    """Return whether the node is taken by releases whose 4-bit weights have one scale for each unit."""
    q = node.input(1).quantization
    return takes(node) and q is not None and len(q.scale) == node.input(1).shape[0]


def prepare_by_channel(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse a bias with one scale, beside which these releases cannot define the operator."""
    bias = node.optional(2)
    if bias is not None and bias.quantization is not None and len(bias.quantization.scale) == 1:
        node.reject("XNNPACK fails to delegate the bias beside 4-bit weights", bias, expected="scales", got="one scale")
    return prepare(node, arithmetic)


def check_sums(node: Node) -> None:
    """Refuse sums of 4-bit weights that can leave 28 bits, where XNNPACK wraps them.

    Source: XNNPACK's pack_qs8_qc4w_gemm_goi_w and qs8-qc4w-gemm, which keep sixteen times the sum in 32 bits.
    """
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    largest = max(abs(code - int(x.zero_point)) for code in type_range(x.type.label))
    sums = np.abs(node.constant(1)).sum(axis=1, dtype=np.int64) * largest
    if bias is not None:
        sums = sums + np.abs(node.constant(2).astype(np.int64)).reshape(-1)
    if sums.size and sums.max() >= WRAPS:
        node.refuse(f"sums of 4-bit weights can reach {sums.max():,}, which XNNPACK wraps in 28 bits", w)


#: The first number beyond 28 bits.
WRAPS = 2**27

#: Rows beyond which products by BLAS are faster.
_MOST_ROWS = 4


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    shape: Shape  # of the output
    sums: HybridSums  # of products with the weights
    scale: Array  # of the weights, one a unit, float32
    rescale: Rescale
    clamp: NumberClamp
    weights: Array  # (O, K), int8


def takes_hybrid(node: Node) -> bool:
    """Return whether weights are constant and signed, and a bias has one element a unit."""
    w, bias = node.input(1), node.optional(2)
    return (
        is_plain(node)
        and w.type != TensorType.UINT8
        and (takes_xnnpack_blocks(w) if is_blockwise(w) else has_weight_scales(w))
        and (bias is None or int(np.prod(bias.shape)) == w.shape[0])
    )


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without the weights' zero points, which are 0, or ignored for 8 bits."""
    shape, x, w = output_shape(node), node.input(0), node.input(1)
    if x.recorded == ():
        node.reject("XNNPACK's quantized copy of the input needs a recorded shape", x, expected=list(x.shape), got=[])
    if is_blockwise(w):
        return prepare_xnnpack_blocks(node, arithmetic)
    assert w.quantization is not None  # takes saw to both
    assert w.value is not None
    data = HybridData(
        shape=shape,
        sums=HybridSums.of_rows(w.value.astype(np.int16), prod(shape[:-1])),
        scale=np.array(np.broadcast_to(w.quantization.scale, w.shape[0]), np.float32),
        rescale=arithmetic.xnnpack_rescale,
        clamp=float_range(node),
        weights=np.array(w.value, np.int8),
    )
    is_small = 0 < prod(shape) <= _MOST_ROWS * shape[-1] and arithmetic.xnnpack_rescale in (
        rescale_fused,
        rescale_apart,
    )
    return Prepared((shape,), data, eval_hybrid_rows if is_small else eval_hybrid)


@filling(lambda data, *_: (data.shape, np.float32))
def eval_hybrid_rows(data: HybridData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Evaluate few rows."""
    units, length = data.weights.shape
    undefined = np.zeros(1, np.int8)
    multiply = multiply_quantized.bound(
        np.ascontiguousarray(x).reshape(-1, length),
        data.weights,
        data.scale,
        bias_of(bias, units, np.float32),
        data.rescale is rescale_fused,
        *data.clamp,
        out.reshape(-1, units),
        undefined,
    )
    return partial(check_quantized, multiply, undefined)


@filling(lambda data, *_: (data.shape, np.float32))
def eval_hybrid(data: HybridData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Rounding: the sum to float32, then as `rescale`."""
    units, length = data.weights.shape
    rows, added = np.ascontiguousarray(x).reshape(-1, length), bias_of(bias, units, np.float32)
    flat = out.reshape(-1, units)
    return multiply_dynamically(rows, length, data.sums, data.rescale, data.scale, added, data.clamp, 1, flat)


_HYBRID = delegate(
    Kernel("FULLY_CONNECTED", "float32 int8|uint8|int4|int2 float32? -> float32", prepare_hybrid, (1, 14)), takes_hybrid
)
_WHOLE = of_whole_rows(_HYBRID)
_NARROW = "int8 int4|int2 int32? -> int8"
_CODES = tuple(
    delegate(Kernel("FULLY_CONNECTED", types, prepare, (1, 14)), takes)
    for types in ("uint8 uint8 int32? -> uint8", "int8 int8 int32? -> int8", _NARROW)
)
_BY_CHANNEL = delegate(Kernel("FULLY_CONNECTED", "int8 int4 int32? -> int8", prepare_by_channel, (1, 14)), by_channel)

_XNNPACK = (
    *valid(xnnpack(until="litert-1.0"), *(row for row in _CODES if row.types != _NARROW)),
    *valid(xnnpack("litert-1.4"), *map(of_whole_rows, _CODES)),
    *valid(xnnpack("litert-1.4", "litert-2.0"), of_whole_rows(_BY_CHANNEL)),
    *valid(xnnpack("litert-2.1", cpu="x86-64 arm64"), _WHOLE),
    *valid(xnnpack("litert-2.1", cpu="wasm"), *promising(UNCLAIMED, (_WHOLE,))),
    *valid(xnnpack("litert-1.4", "litert-2.0"), *promising(UNCLAIMED, (_WHOLE,))),
    *valid(xnnpack("litert-1.0", "litert-1.0"), *promising(UNCLAIMED, (_HYBRID,))),
)


@dataclass(frozen=True, slots=True, eq=False)
class XnnpackFloatsData:
    """Constants. `product` is None if the weights are unpacked when the model runs."""

    shape: Shape  # of the output
    rows: int
    clamp: NumberClamp
    product: FusedProduct | None


@meeting(needs(0, has_shape), needs(1, ranked(2, 2), is_static), needs(2, is_static, has_shape))
def takes_xnnpack_floats(node: Node) -> bool:
    """Return whether weights and bias are constant, and no operand is empty."""
    return node.version != SPARSE_VERSION


def prepare_xnnpack_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the panels of constant weights."""
    shape, w = output_shape(node), node.input(1)
    rows = int(np.prod(shape[:-1]))
    product = FusedProduct.of_rows(w.value.T, rows) if w.value is not None else None
    return Prepared((shape,), XnnpackFloatsData(shape, rows, open_range(node), product), evaluate_xnnpack_floats)


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate_xnnpack_floats(data: XnnpackFloatsData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Rounding: one for each product and sum, in order of k, from the bias on."""
    if data.product is None:

        def bind() -> Call:
            bound = replace(data, product=FusedProduct.of_rows(w.T, data.rows))
            return evaluate_xnnpack_floats.bind(bound, out, x, w, bias)

        return once_known(w, bind)
    units = data.shape[-1]
    image = np.ascontiguousarray(x).reshape(-1)[: data.rows * data.product.length].reshape(1, 1, data.rows, -1)
    return data.product.into(image, bias_of(bias, units, np.float32), data.clamp, out.reshape(-1, units))


_ROW = of_whole_rows(Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", prepare_xnnpack_floats, (1, 14)))

_XNNPACK_FLOATS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), delegate(_ROW, of_no_narrower_bias(takes_xnnpack_floats))),
    *valid(xnnpack("litert-2.1", "litert-2.1", cpu="x86-64"), delegate(_ROW, of_one_width(takes_xnnpack_floats))),
)

#: The rows of all operators above.
KERNELS = (*_XNNPACK, *_XNNPACK_FLOATS)
