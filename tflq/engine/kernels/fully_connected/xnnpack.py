"""FULLY_CONNECTED by XNNPACK. Data sheets: tflq/engine/kernels/fully_connected/reference.py, hybrid.py.

8-bit codes: the reference's sums, scaled by a float32 multiplier. Floats and narrow weights: rows quantized
asymmetrically, regardless of the option. Weights with a scale for every block: xnnpack_blocks.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitFullyConnectedNode, CheckTensorFilterType; XNNPACK's qd8-f32-qc8w and qc4w
gemm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.delegation import UNCLAIMED, delegate, has_bias_scales, has_shape, is_quantized
from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.families.hybrid import is_blockwise
from tflq.engine.kernels.families.hybrid_sums import HybridSums
from tflq.engine.kernels.families.xnnpack_scaling import gemm, rescaled, with_fitting_bias
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.fully_connected import xnnpack_blocks as fully_connected_blocks
from tflq.engine.kernels.fully_connected.dense import prepare_quantized
from tflq.engine.kernels.fully_connected.shapes import SPARSE_VERSION, of_whole_rows, output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.dynamic_range_float32 import (
    Rescale,
    multiply_quantized,
    not_finite,
    quantize_rows_float32,
    rescale_apart,
    rescale_fused,
)
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Weights of 4 and 2 bits fill whole bytes.
VALUES_A_BYTE = {TensorType.INT4: 2, TensorType.INT2: 4}


def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, and signed weights have zero point 0."""
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    return (
        node.version != SPARSE_VERSION
        and is_quantized(x)
        and is_quantized(y)
        and has_weight_scales(w)
        and w.is_constant
        and has_shape(w, 2, 2)
        and (bias is None or (has_bias_scales(bias) and bias.is_constant))
        and (w.type == TensorType.UINT8 or w.zero_point == 0)
        and w.shape[1] % VALUES_A_BYTE.get(w.type, 1) == 0
    )


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
    """Return whether weights are constant and signed, in whole bytes, and the bias constant."""
    w, bias = node.input(1), node.optional(2)
    return (
        node.version != SPARSE_VERSION
        and w.type != TensorType.UINT8
        and w.is_constant
        and has_shape(w, 2, 2)
        and (fully_connected_blocks.takes(w) if is_blockwise(w) else has_weight_scales(w))
        and w.shape[1] % VALUES_A_BYTE.get(w.type, 1) == 0
        and int(node.options["fused_activation_function"]) <= 3
        and (bias is None or int(np.prod(bias.shape)) == w.shape[0])
    )


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without the weights' zero points, which are 0, or ignored for 8 bits."""
    shape, x, w = output_shape(node), node.input(0), node.input(1)
    if x.recorded == ():
        node.reject("XNNPACK's quantized copy of the input needs a recorded shape", x, expected=list(x.shape), got=[])
    if is_blockwise(w):
        return fully_connected_blocks.prepare(node, arithmetic)
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
    return partial(_check, multiply, undefined)


def _check(multiply: Call, undefined: Array) -> None:
    multiply()
    if undefined[0]:
        undefined[0] = 0
        raise not_finite()


def eval_hybrid(data: HybridData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Rounding: the sum to float32, then as `rescale`."""
    units, length = data.weights.shape
    rows = quantize_rows_float32(np.ascontiguousarray(x).reshape(-1, length))
    centred = rows.codes.astype(np.int16) - rows.zero_point.astype(np.int16)[:, None]
    sums = np.empty((len(centred), units), np.int32)
    data.sums.into(centred, 0, sums)
    out = data.rescale(sums.astype(np.float32), rows.scale[:, None], data.scale, bias_of(bias, units, np.float32))
    return clamp_in_place(out, *data.clamp).reshape(data.shape)


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

KERNELS = (
    *valid(xnnpack(until="litert-1.0"), *(row for row in _CODES if row.types != _NARROW)),
    *valid(xnnpack("litert-1.4"), *map(of_whole_rows, _CODES)),
    *valid(xnnpack("litert-1.4", "litert-2.0"), of_whole_rows(_BY_CHANNEL)),
    *valid(xnnpack("litert-2.1", cpu="x86-64 arm64"), _WHOLE),
    *valid(xnnpack("litert-2.1", cpu="wasm"), *promising(UNCLAIMED, (_WHOLE,))),
    *valid(xnnpack("litert-1.4", "litert-2.0"), *promising(UNCLAIMED, (_WHOLE,))),
    *valid(xnnpack("litert-1.0", "litert-1.0"), *promising(UNCLAIMED, (_HYBRID,))),
)
