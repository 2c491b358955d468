"""FULLY_CONNECTED of the optimized resolver. Data sheets: tflq/engine/kernels/fully_connected/reference.py, hybrid.py.

The sums are the reference's. ruy's matrix product scales int8, uint8 after 2.14 and 16-bit activations with 32-bit
accumulators; these have 64 bits only if the bias or the options ask for it. On AArch64, and with the NEON code through
SSE up to 2.12, one column has the matrix-vector kernel; up to 2.14 gemmlowp makes the others on AArch64, up to 2.12
those of uint8. Up to 2.9 several weight scales read as 0. Narrower weights of 16-bit activations are
unpacked first; floats with 4-bit weights and shuffled weights are not modelled: refused.
float32: as Eigen multiplies matrices; up to 2.14 one row times one column goes through two accumulators, not four.
Hybrid on AArch64, in both resolvers: the scaled sum and the earlier value are added with one rounding; up to 2.14 a
symmetric scale is a product with 1/127, as that wheel may turn quotients into products.
Source: LiteRT 2.3 fully_connected.cc EvalQuantized, EvalFloat, EvalHybridDense4Bit; optimized/integer_ops and
optimized_ops.h FullyConnected; optimized/fully_connected_4bit.h; cpu_backend_gemm_eigen.cc; ruy kernel_arm64.cc;
neon_tensor_utils.cc NeonMatrixBatchVectorMultiplyAccumulate, NeonReductionSumVector. TensorFlow 2.5 to 2.14
fully_connected.cc; cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv; tensor_utils
SymmetricQuantizeFloats; Eigen's InnerProduct through Redux.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.contraction import accumulator_16x8, bias_of
from tflq.engine.kernels.families.legacy_scales import one_scale
from tflq.engine.kernels.families.matrix_vector import Scaling, by_type, gemmlowp, ruy, scalar_gemmlowp
from tflq.engine.kernels.families.ordered_products import OrderedProduct
from tflq.engine.kernels.families.unclaimed import beside_dense, unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import Prepare
from tflq.engine.kernels.fully_connected import dense as fully_connected
from tflq.engine.kernels.fully_connected.dense import (
    FloatData,
    eval_empty,
    eval_float,
    prepare_float,
    prepare_quantized,
    units_last,
)
from tflq.engine.kernels.fully_connected.hybrid import prepare_with
from tflq.engine.kernels.fully_connected.reference import flat, four_bits
from tflq.engine.kernels.fully_connected.shapes import output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt, ref, tflite
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic, prepared_real
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.dynamic_range import ByteMatrix, Floats, Rows, quantize_rows
from tflq.engine.numerics.multiply_add import fuse
from tflq.model.ir import TensorType
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale by ruy, with the real multipliers that Prepare quantizes."""
    gemm = replace(arithmetic, dense_real=prepared_real, requantize_dense=arithmetic.requantize_gemm)
    return prepare_quantized(node, gemm)


def prepare_shuffled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse shuffled weights, whose vector code is not modelled."""
    node.refuse("shuffled weights are not modelled under the optimized resolver")


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate in 32 bits if there is neither a bias nor an option for its type."""
    bias, w = node.optional(2), node.input(1)
    if w.zero_point:
        return prepare_quantized(node, arithmetic)
    if bias is None and not int(node.options.get("quantized_bias_type", 0)):
        fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT32)}
        node = replace(node, options=replace(node.options, fields=fields))
    is_gemm = accumulator_16x8(node, node.optional(2)) == np.int32
    return (prepare if is_gemm else prepare_quantized)(node, arithmetic)


def refuse_packed_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse float activations with 4-bit weights."""
    node.refuse("float activations with 4-bit weights are not modelled under the optimized resolver")


def _by_shape(scaling: Scaling) -> Prepare:
    """Return a prepare that scales by the product's shape, with the multipliers that Prepare quantizes."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        shape = output_shape(node)
        stage = scaling(arithmetic, shape[-1], node.input(1).shape[1], prod(shape[:-1]))
        return prepare_quantized(node, replace(arithmetic, dense_real=prepared_real, requantize_dense=stage))

    return prepare


def unshifted(prepare: Prepare) -> Prepare:
    """Return a prepare of 16-bit outputs of uint8, whose zero point shifts the activation's limits only.

    Source: LiteRT 2.3 optimized_ops.h FullyConnected of int16 outputs, whose parameters of the product have none.
    """

    def prepare_unshifted(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare(node, arithmetic)
        output = prepared.data.output
        pipeline = replace(output.pipeline, zero_point=ZeroPoint(0))
        return replace(prepared, data=replace(prepared.data, output=replace(output, pipeline=pipeline)))

    return prepare_unshifted


def byte_rows(scaling: Scaling) -> tuple[Kernel, ...]:
    """Return the rows of all 8-bit forms."""
    return (
        Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", _by_shape(scaling), (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", _by_shape(scaling), (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> int16", unshifted(_by_shape(scaling)), (1, 14)),
    )


#: Columns, rows and, by name, `cache`: see eigen.product.
Product = Callable[..., Floats]


def _by_product(product: Product) -> Prepare:
    """Return a prepare whose sums `product` computes from (K, N) weights and (B, K) rows."""

    def evaluate(data: FloatData, x: Array, w: Array, bias: Array | None = None, *, cache: int) -> Array:
        """Rounding: product and sum apart, in Eigen's order of k, bias last."""
        length, units = data.weights.shape
        out = np.empty(data.shape, np.float32)
        sums = out.reshape(-1, units)
        rows = np.ascontiguousarray(x).reshape(-1)[: sums.shape[0] * length].reshape(-1, length)
        np.add(product(data.weights, rows, cache=cache), bias_of(bias, units, np.float32), out=sums)
        return clamp_in_place(out, *data.clamp)

    def eval_variable(data: FloatData, x: Array, w: Array, bias: Array | None = None, *, cache: int) -> Array:
        return evaluate(replace(data, weights=units_last(w)), x, w, bias, cache=cache)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare_float(node, arithmetic)
        if prepared.eval is eval_empty:
            return prepared
        data: FloatData = prepared.data
        if node.input(1).is_constant:
            (length, units), count = data.weights.shape, prod(data.shape[:-1])
            block = eigen.ordered_block(length, units, count, arithmetic.first_level_cache)
            ordered = OrderedProduct.of_rows(data.weights, count, block) if block else None
            if ordered is not None:
                return replace(prepared, data=replace(data, product=ordered), eval=eval_float)
        evaluation = evaluate if node.input(1).is_constant else eval_variable
        return replace(prepared, eval=partial(evaluation, cache=arithmetic.first_level_cache))

    return prepare


def float_rows(product: Product) -> tuple[Kernel, ...]:
    """Return the row of float weights."""
    return (Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", _by_product(product), (1, 14)),)


class FusedMatrix(ByteMatrix):
    """Signs of -128 are kept, sums of rows do not wrap."""

    __slots__ = ()

    def accumulate(self, rows: Rows, out: Floats) -> None:
        """Add the scaled products to `out`. Rounding: the product of the scales, then product and sum at once (FMA)."""
        sums = self.sums(rows.codes)
        if not rows.is_centred:
            sums -= rows.zero_point[:, None] * self.row_sums
        out[...] = fuse(sums.astype(np.float32), rows.scale[:, None] * self.scale, out)


def fused_matrix(weights: Array, scale: np.float32 | Array) -> ByteMatrix:
    """Return the matrix of these weights, read as int8."""
    codes = np.ascontiguousarray(weights).view(np.int8)
    return replace(FusedMatrix.of(weights, scale, keeps_signs=True), row_sums=codes.sum(axis=1, dtype=np.int32))


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with another matrix."""
    return prepare_with(node, fused_matrix, quantize_rows)


_HYBRID = Kernel(
    "FULLY_CONNECTED", "float32 int8|uint8|int4|int2 float32? -> float32", prepare_hybrid, (1, 14), session=True
)


def quantize_by_product(x: Array, asymmetric: bool) -> Rows:
    """Quantize rows; the symmetric scale is the largest magnitude times float32(1 / 127), not divided by 127."""
    rows = quantize_rows(x, asymmetric)
    if asymmetric:
        return rows
    largest = np.abs(x).max(axis=1, initial=np.float32(0))
    scale = np.where(largest == 0, np.float32(1), largest * (np.float32(1) / np.float32(127)))
    return replace(rows, scale=scale.astype(np.float32))


def prepare_hybrid_by_product(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with other rows and another matrix."""
    return prepare_with(node, fused_matrix, quantize_by_product)


_THROUGH_SSE = by_type(byte_rows(ruy), byte_rows(gemmlowp))
KERNELS = (
    *valid(
        opt(),
        Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", prepare, (1, 14)),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare_int16, (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16 uint8", prepare_shuffled, (1, 14)),
        *unclaimed_floats(beside_dense(fully_connected.ROWS)),
    ),
    *valid(
        opt("litert-1.0"),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", prepare, (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> int16", unshifted(prepare), (1, 14)),
        Kernel("FULLY_CONNECTED", "int16 int4|int2 int32|int64? -> int16", prepare_int16, (1, 14)),
        Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", refuse_packed_floats, (1, 14)),
        *float_rows(eigen.product),
    ),
    *valid(opt("tflite-2.13", "litert-1.0"), four_bits(prepare)),
    *valid(
        opt(until="litert-1.0"),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", flat(prepare_int16, by_channel=True), (1, 14)),
    ),
    *valid(opt("litert-1.0", cpu="arm64"), *byte_rows(ruy), _HYBRID),
    *valid(ref("litert-1.0", cpu="arm64"), _HYBRID),
    *valid(opt(until="tflite-2.14"), *float_rows(partial(eigen.product, dot=eigen.coefficients))),
    *valid(opt(until="tflite-2.14", cpu="x86-64"), *by_type((), byte_rows(scalar_gemmlowp))),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *byte_rows(gemmlowp)),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"),
        replace(
            _HYBRID,
            prepare=one_scale(prepare_hybrid_by_product),
            exactness=close("activations quantized asymmetrically were not fitted"),
        ),
    ),
    *valid(opt(until="tflite-2.12", cpu="x86-64", vectors=True), *_THROUGH_SSE),
    *valid(
        opt(until="tflite-2.9"),
        Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", one_scale(prepare), (1, 9)),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", one_scale(prepare_int16), (1, 9)),
    ),
    *valid(
        opt(until="tf-2.5", vectors=True),
        *(
            replace(row, prepare=one_scale(row.prepare))
            for row in _THROUGH_SSE
            if row.signature.starts_with(TensorType.INT8)
        ),
    ),
)
