"""FULLY_CONNECTED of r1.15 on 8 bits: weight scales per unit are unknown; several scales read as 0.

Then every sum is multiplied by 0, and the output is its zero point. In the optimized kernels, a single row goes through
the matrix-vector kernel. Operands, options and other refusals: tflq/engine/kernels/fully_connected/reference.py.
Source: TensorFlow r1.15 lite/model.cc GetLegacyQuantization; lite/kernels/fully_connected.cc Prepare; optimized_ops.h,
optimized/integer_ops/fully_connected.h FullyConnected; cpu_backend_gemm.h Gemm, with the NEON code of AArch64 by way of
SSE.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.engine.kernels.families.legacy_scales import as_read
from tflq.engine.kernels.families.matrix_vector import gemmlowp
from tflq.engine.kernels.fully_connected import dense as fully_connected
from tflq.engine.kernels.fully_connected.shapes import output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with quantization parameters as r1.15 reads them."""
    inputs = tuple(None if operand is None else as_read(operand) for operand in node.inputs)
    return fully_connected.prepare_quantized(replace(node, inputs=inputs), arithmetic)


BYTES = valid(
    tf1(),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", prepare, (1, 4)),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16", prepare, (1, 4)),
    Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", prepare, (1, 4)),
)


def prepare_by_shape(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; the product's shape decides which output stage scales it."""
    shape = output_shape(node)
    stage = gemmlowp(arithmetic, shape[-1], node.input(1).shape[1], prod(shape[:-1]))
    return prepare(node, replace(arithmetic, requantize_dense=stage))


KERNELS = (*BYTES, *valid(tf1("opt"), *(replace(row, prepare=prepare_by_shape) for row in BYTES)))
