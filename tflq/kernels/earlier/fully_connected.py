"""FULLY_CONNECTED of 16-bit activations: without a bias sums are 32 bits wide, and scaled as such.

Operands and refusals: tflq/kernels/reference/fully_connected.py.
Source: TensorFlow 2.14 lite/kernels/fully_connected.cc EvalQuantized.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference.fully_connected import prepare_quantized
from tflq.numerics.arithmetic import Arithmetic


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like today's kernel for a model without a bias that declares an int32 bias type."""
    if node.optional(2) is not None:
        return prepare_quantized(node, arithmetic)
    fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT32)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


KERNELS = (Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare_int16, (1, 10)),)
