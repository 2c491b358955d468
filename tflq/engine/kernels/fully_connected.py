"""FULLY_CONNECTED: rows of the input times a weight row per output unit, plus bias, clamped.

| operand | shape                | types                                   | quantization                             |
|---------|----------------------|-----------------------------------------|------------------------------------------|
| x       | any, >= B * K values | float32, uint8, int8, int16             | per tensor; int16: zero point 0          |
| w       | O, K                 | float32, uint8, int8, int4, int2, int16 | per tensor; signed: or along O           |
| bias    | O, optional          | float32, int32, int64                   | a per-tensor scale is checked            |
| y       | B, O, or x's and O   | as x; int16 for uint8 too               | per tensor; int16: zero point 0          |

Options: keep_num_dims, fused activation, quantized_bias_type (16-bit activations).
Weights of 2 and 4 bits have zero point 0; zero points per unit are ignored, and so is x beyond the last whole row.
Other weights: tflq/engine/kernels/fully_connected_dense.py, fully_connected_dense.py, fully_connected_dense.py.
Up to LiteRT 1.0, packed weights of 16-bit and float activations are refused. Up to 2.14, 16-bit activations without a
bias have sums of 32 bits, scaled as such; hybrid results are not claimed. Up to 2.9, several weight scales read as 0,
so that the output is its zero point. Outputs of more than two dimensions are not written, and refused: those of 16 bits
up to 2.7, and of several weight scales up to 1.0 (16 bits, and 8 bits by the reference kernels).
Source: LiteRT 2.3, fully_connected.cc PrepareImpl, EvalQuantized; reference/fully_connected.h FullyConnected;
reference/integer_ops/fully_connected.h FullyConnected, FullyConnectedPerChannel (those that take scales).
TensorFlow 2.14 fully_connected.cc EvalQuantized; reference/integer_ops/fully_connected.h FullyConnectedPerChannel.
TensorFlow 2.9 core/subgraph.cc GetLegacyQuantization; fully_connected.cc PrepareImpl.
TensorFlow 2.7 reference/integer_ops/fully_connected.h FullyConnected (int16).

FULLY_CONNECTED of TensorFlow Lite Micro.

16-bit activations with a 32-bit bias: the accumulator has 32 bits, too; quantized_bias_type is ignored. Builds of 2025
up to June 2026 have 32 bits without a bias as well. CMSIS-NN: int8
with an output of three dimensions or more is a pointwise convolution; 16 bits accumulate in 64.
Source: tflite-micro (October 2026), fully_connected.cc FullyConnectedEval. tflite-micro (August 2026),
cmsis_nn/fully_connected.cc EvalQuantizedInt8, EvalQuantizedInt16.

FULLY_CONNECTED of the optimized resolver.

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

FULLY_CONNECTED of r1.15 on 8 bits: weight scales per unit are unknown; several scales read as 0.

Then every sum is multiplied by 0, and the output is its zero point. In the optimized kernels, a single row goes
through the matrix-vector kernel. Source: TensorFlow r1.15 lite/model.cc GetLegacyQuantization;
lite/kernels/fully_connected.cc Prepare; optimized_ops.h, optimized/integer_ops/fully_connected.h FullyConnected;
cpu_backend_gemm.h Gemm, with the NEON code of AArch64 by way of SSE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels import fully_connected_dense
from tflq.engine.kernels import fully_connected_dense as fully_connected
from tflq.engine.kernels.families.activation import (
    UNDEFINED_PACKED,
    as_wide_as_its_bias,
    clamp_in_place,
    one_scale,
    only_one_scale,
)
from tflq.engine.kernels.families.contraction import Scaling, accumulator_16x8, bias_of, gemmlowp, ruy, scalar_gemmlowp
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.engine.kernels.families.ordered import OrderedProduct
from tflq.engine.kernels.families.unary import beside_dense, unclaimed_floats
from tflq.engine.kernels.fully_connected_dense import (
    FloatData,
    eval_empty,
    eval_float,
    output_shape,
    prepare_float,
    prepare_quantized,
    prepare_with,
    units_last,
)
from tflq.engine.kernels.kernel import Kernel, Node, Prepare, Prepared, by_form, close, promising, valid
from tflq.engine.kernels.validity import SPEC, cmsis_nn, micro, opt, ref, tf1, tflite
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic, prepared_real
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.dynamic_range import ByteMatrix, Floats, QuantizedRows, quantize_rows
from tflq.engine.numerics.estimates import fuse
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like today's kernel for a model without a bias that declares an int32 bias type."""
    if node.optional(2) is not None:
        return prepare_quantized(node, arithmetic)
    return prepare_quantized(node.with_options(quantized_bias_type=int(TensorType.INT32)), arithmetic)


_PACKED = (
    Kernel("FULLY_CONNECTED", "int16 int4 int32|int64? -> int16", UNDEFINED_PACKED),
    Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", UNDEFINED_PACKED),
)


def flat(prepare: Prepare, *, by_channel: bool = False) -> Prepare:
    """Return `prepare`, which refuses outputs of more than two dimensions: the loops take the first two for rows and
    units. `by_channel`: only those of weights with several scales.
    """

    def prepare_flat(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared, q = prepare(node, arithmetic), node.input(1).quantization
        shape = prepared.shapes[0]
        if shape is not None and len(shape) > 2 and not (by_channel and (q is None or len(q.scale) == 1)):
            raise UndefinedResultError(node.op, "outputs of more than two dimensions are not written")
        return prepared

    return prepare_flat


_by_channel = flat(prepare_quantized, by_channel=True)
_REFERENCE = (
    *fully_connected_dense.ROWS,
    *fully_connected_dense.HYBRID_ROWS,
    *fully_connected_dense.SHUFFLED_ROWS,
    *fully_connected_dense.SPARSE_ROWS,
    *by_form(
        "FULLY_CONNECTED",
        14,
        {
            "int8 int8 int32? -> int8": {
                ref("tflite-2.11", "litert-1.0"): _by_channel,
                tflite(until="tflite-2.9"): one_scale(prepare_quantized),
            },
            # Source: TensorFlow 2.14, LiteRT 1.0 PrepareImpl.
            "int8 int4 int32? -> int8": {tflite("tflite-2.13", "litert-1.0"): only_one_scale(prepare_quantized)},
            "int16 int8 int32|int64? -> int16": {
                ref("tflite-2.11", "litert-1.0"): _by_channel,
                ref(until="tflite-2.14"): flat(prepare_int16, by_channel=True),
                tflite(until="tflite-2.9"): one_scale(prepare_int16),
                tflite(until="tflite-2.7"): flat(one_scale(prepare_int16)),
            },
        },
    ),
    *valid(
        tflite(until="tflite-2.14"),
        *_PACKED,
        *promising(
            UNCLAIMED_2_14, (replace(row, prepare=one_scale(row.prepare)) for row in fully_connected_dense.HYBRID_ROWS)
        ),
    ),
    *valid(tflite("litert-1.0", "litert-1.0"), *_PACKED),
)


#: A pointwise convolution takes the place of a matrix product where the depth is a multiple of this.
_DEPTH = 4


def prepare_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Drop the weights' zero point for arm_convolve_1x1_s8_fast; arm_fully_connected_s8 takes one."""
    prepared = prepare_quantized(node, arithmetic)
    weights = node.input(1)
    shape = prepared.shapes[0]
    if not weights.zero_point or weights.quantization is None or shape is None:
        return prepared
    if len(shape) < 3 or weights.shape[-1] % _DEPTH:
        return prepared
    symmetric = replace(weights.quantization, zero_point=np.zeros_like(weights.quantization.zero_point))
    return prepare_quantized(node.with_input(1, replace(weights, quantization=symmetric)), arithmetic)


def prepare_int16_micro(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate in 64 bits; refuse a 32-bit bias, which is read beyond its end."""
    bias = node.optional(2)
    if bias is not None and bias.type == TensorType.INT32:
        raise UndefinedResultError(node.op, "a 32-bit bias is read as 64 bits, beyond its end")
    return prepare_quantized(node.with_options(quantized_bias_type=int(TensorType.INT64)), arithmetic)


def prepare_narrow(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate in 32 bits, where sums wrap, unless a bias has 64."""
    return prepare_quantized(node.with_options(quantized_bias_type=int(TensorType.INT32)), arithmetic)


_MICRO = (
    *valid(micro(until="litert-2.1"), Kernel("FULLY_CONNECTED", "int16 int8 int32? -> int16", prepare_narrow, (1, 14))),
    *valid(
        micro(SPEC),
        Kernel("FULLY_CONNECTED", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 14)),
    ),
    *valid(
        cmsis_nn(),
        Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", prepare_int8, (1, 14)),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare_int16_micro, (1, 14)),
    ),
)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale by ruy, with the real multipliers that Prepare quantizes."""
    gemm = replace(arithmetic, dense_real=prepared_real, requantize_dense=arithmetic.requantize_gemm)
    return prepare_quantized(node, gemm)


def prepare_shuffled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse shuffled weights, whose vector code is not modelled."""
    node.refuse("shuffled weights are not modelled under the optimized resolver")


def prepare_int16_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate in 32 bits if there is neither a bias nor an option for its type."""
    bias, w = node.optional(2), node.input(1)
    if w.zero_point:
        return prepare_quantized(node, arithmetic)
    if bias is None and not int(node.options.get("quantized_bias_type", 0)):
        node = node.with_options(quantized_bias_type=int(TensorType.INT32))
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


by_ruy, by_gemmlowp = _by_shape(ruy), _by_shape(gemmlowp)

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


class FusedMatrix(ByteMatrix):
    """Signs of -128 are kept, sums of rows do not wrap."""

    __slots__ = ()

    def accumulate(self, rows: QuantizedRows, out: Floats) -> None:
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


def quantize_by_product(x: Array, asymmetric: bool) -> QuantizedRows:
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


_UP_TO_2_14 = opt(until="tflite-2.14", cpu="x86-64")
_UP_TO_2_12 = opt(until="tflite-2.12", cpu="x86-64", vectors=True)
_OPTIMIZED = (
    *by_form(
        "FULLY_CONNECTED",
        14,
        {
            "int8 int8|int4|int2 int32? -> int8": {
                opt(): prepare,
                opt("litert-1.0", cpu="arm64"): by_ruy,
                opt(until="tflite-2.14", cpu="arm64"): by_gemmlowp,
                _UP_TO_2_12: by_ruy,
                opt(until="tflite-2.9"): one_scale(prepare),
                opt(until="tf-2.5", vectors=True): one_scale(by_ruy),
            },
            "int8 int4 int32? -> int8": {opt("tflite-2.13", "litert-1.0"): only_one_scale(prepare)},
            "int16 int8 int32|int64? -> int16": {
                opt(): prepare_int16_optimized,
                opt(until="litert-1.0"): flat(prepare_int16_optimized, by_channel=True),
                opt(until="tflite-2.9"): one_scale(prepare_int16_optimized),
            },
            "uint8 uint8 int32 -> int16 uint8": {opt(): prepare_shuffled},
            "uint8 uint8 int32? -> uint8": {
                opt("litert-1.0"): prepare,
                opt("litert-1.0", cpu="arm64"): by_ruy,
                _UP_TO_2_14: _by_shape(scalar_gemmlowp),
                opt(until="tflite-2.14", cpu="arm64"): by_gemmlowp,
                _UP_TO_2_12: by_gemmlowp,
            },
            "uint8 uint8 int32? -> int16": {
                opt("litert-1.0"): unshifted(prepare),
                opt("litert-1.0", cpu="arm64"): unshifted(by_ruy),
                _UP_TO_2_14: unshifted(_by_shape(scalar_gemmlowp)),
                opt(until="tflite-2.14", cpu="arm64"): unshifted(by_gemmlowp),
                _UP_TO_2_12: unshifted(by_gemmlowp),
            },
            "int16 int4|int2 int32|int64? -> int16": {opt("litert-1.0"): prepare_int16_optimized},
            "float32 int4 float32? -> float32": {opt("litert-1.0"): refuse_packed_floats},
            "float32 float32 float32? -> float32": {
                opt("litert-1.0"): _by_product(eigen.product),
                opt(until="tflite-2.14"): _by_product(partial(eigen.product, dot=eigen.coefficients)),
            },
        },
    ),
    *valid(opt(), *unclaimed_floats(beside_dense(fully_connected.ROWS))),
    *valid(opt("litert-1.0", cpu="arm64"), _HYBRID),
    *valid(ref("litert-1.0", cpu="arm64"), _HYBRID),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"),
        replace(
            _HYBRID,
            prepare=one_scale(prepare_hybrid_by_product),
            exactness=close("activations quantized asymmetrically were not fitted"),
        ),
    ),
)


#: The reference kernel's prepare, with quantization parameters as r1.15 reads them.
prepare_tf1 = one_scale(prepare_quantized)
BYTES = valid(
    tf1(),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", prepare_tf1, (1, 4)),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16", prepare_tf1, (1, 4)),
    Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", prepare_tf1, (1, 4)),
)


def prepare_by_shape(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; the product's shape decides which output stage scales it."""
    shape = output_shape(node)
    stage = gemmlowp(arithmetic, shape[-1], node.input(1).shape[1], prod(shape[:-1]))
    return prepare_tf1(node, replace(arithmetic, requantize_dense=stage))


_TF1 = (*BYTES, *valid(tf1("opt"), *(replace(row, prepare=prepare_by_shape) for row in BYTES)))

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1)
