"""FULLY_CONNECTED of TensorFlow Lite Micro. Operands and options: tflq/engine/kernels/fully_connected/reference.py.

16-bit activations with a 32-bit bias: the accumulator has 32 bits, too; quantized_bias_type is ignored. Builds of 2025
up to June 2026 have 32 bits without a bias as well. CMSIS-NN: int8
with an output of three dimensions or more is a pointwise convolution; 16 bits accumulate in 64.
Source: tflite-micro (October 2026), fully_connected.cc FullyConnectedEval. tflite-micro (August 2026),
cmsis_nn/fully_connected.cc EvalQuantizedInt8, EvalQuantizedInt16.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.families.bias_width import as_wide_as_its_bias
from tflq.engine.kernels.fully_connected.dense import prepare_quantized
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import SPEC, cmsis_nn, micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType

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
    inputs = (node.inputs[0], replace(weights, quantization=symmetric), *node.inputs[2:])
    return prepare_quantized(replace(node, inputs=inputs), arithmetic)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate in 64 bits; refuse a 32-bit bias, which is read beyond its end."""
    bias = node.optional(2)
    if bias is not None and bias.type == TensorType.INT32:
        raise UndefinedResultError(node.op, "a 32-bit bias is read as 64 bits, beyond its end")
    fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT64)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


def prepare_narrow(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate in 32 bits, where sums wrap, unless a bias has 64."""
    fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT32)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


KERNELS = (
    *valid(micro(until="litert-2.1"), Kernel("FULLY_CONNECTED", "int16 int8 int32? -> int16", prepare_narrow, (1, 14))),
    *valid(
        micro(SPEC),
        Kernel("FULLY_CONNECTED", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 14)),
    ),
    *valid(
        cmsis_nn(),
        Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", prepare_int8, (1, 14)),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare_int16, (1, 14)),
    ),
)
