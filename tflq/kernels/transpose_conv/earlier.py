"""TRANSPOSE_CONV of 16-bit activations: the bias alone says how wide the accumulator is, 32 bits where there is none.

Operands and refusals: tflq/kernels/transpose_conv/reference.py; there is no option quantized_bias_type yet.
Source: TensorFlow 2.14 lite/kernels/transpose_conv.cc EvalQuantizedPerChannel16x8.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.transpose_conv.reference import prepare_quantized
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like today's kernel for a model that declares the type its bias has (int32 without a bias)."""
    bias = node.optional(3)
    width = TensorType.INT32 if bias is None else bias.type
    fields = {**node.options.fields, "quantized_bias_type": int(width)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


KERNELS = valid(
    tflite(until="tflite-2.14"),
    Kernel("TRANSPOSE_CONV", "int32 int8 int16 int32|int64? -> int16", prepare_int16, (1, 5), (0,)),
)
