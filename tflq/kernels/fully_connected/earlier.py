"""FULLY_CONNECTED of 16-bit activations: without a bias sums are 32 bits wide, and scaled as such.

Operands and refusals: tflq/kernels/fully_connected/reference.py.
Source: TensorFlow 2.14 lite/kernels/fully_connected.cc EvalQuantized.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.families.four_bits import refuse_packed
from tflq.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.kernels.fully_connected import reference_hybrid
from tflq.kernels.fully_connected.reference import prepare_quantized
from tflq.kernels.kernel import Kernel, Node, Prepared, promising, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like today's kernel for a model without a bias that declares an int32 bias type."""
    if node.optional(2) is not None:
        return prepare_quantized(node, arithmetic)
    fields = {**node.options.fields, "quantized_bias_type": int(TensorType.INT32)}
    return prepare_quantized(replace(node, options=replace(node.options, fields=fields)), arithmetic)


_PACKED = (
    Kernel("FULLY_CONNECTED", "int16 int4 int32|int64? -> int16", refuse_packed),
    Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", refuse_packed),
)
KERNELS = (
    *valid(
        tflite(until="tflite-2.14"),
        Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare_int16, (1, 10)),
        *_PACKED,
        *promising(UNCLAIMED_2_14, reference_hybrid.KERNELS),
    ),
    *valid(tflite("litert-1.0", "litert-1.0"), *_PACKED),
)
