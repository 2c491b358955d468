"""FULLY_CONNECTED of 16-bit activations: with 32-bit accumulators ruy makes the product, else the reference.

They have 64 bits only where the bias has, or the options say so.
Source: LiteRT 2.3 fully_connected.cc EvalQuantized; optimized/integer_ops/fully_connected.h FullyConnected (int16).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.families.contraction import accumulator_16x8
from tflq.kernels.fully_connected.optimized import prepare
from tflq.kernels.fully_connected.reference import prepare_quantized
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


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


KERNELS = valid(opt(), Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare_int16, (1, 14)))
