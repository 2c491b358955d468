"""FULLY_CONNECTED: the reference's sums, scaled as ruy's matrix product scales them.

16-bit activations take 64-bit accumulators, as in the reference, only where the bias has 64 bits or the options say so.
Operands, options and refusals: tflq/kernels/reference/fully_connected.py.
Source: LiteRT 2.3 fully_connected.cc EvalQuantized; optimized/integer_ops/fully_connected.h FullyConnected.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.contraction import accumulator_16x8
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference.fully_connected import prepare_quantized
from tflq.numerics.arithmetic import Arithmetic, prepared_real


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Real multipliers are those that Prepare quantizes."""
    gemm = replace(arithmetic, dense_real=prepared_real, requantize_dense=arithmetic.requantize_gemm)
    return prepare_quantized(node, gemm)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Without a bias and without a word about it, accumulators have 32 bits."""
    bias, w = node.optional(2), node.input(1)
    if w.zero_point:
        return prepare_quantized(node, arithmetic)
    if bias is None and not int(node.options.get("quantized_bias_type", 0)):
        fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT32)}
        node = replace(node, options=replace(node.options, fields=fields))
    is_gemm = accumulator_16x8(node, node.optional(2)) == np.int32
    return (prepare if is_gemm else prepare_quantized)(node, arithmetic)


def prepare_shuffled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """What vector code makes of shuffled weights is not known here."""
    node.refuse("shuffled weights are not modelled under the optimized resolver")


KERNELS = (
    Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", prepare, (1, 14)),
    Kernel("FULLY_CONNECTED", "int16 int8|int4|int2 int32|int64? -> int16", prepare_int16, (1, 14)),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16 uint8", prepare_shuffled, (1, 14)),
)
