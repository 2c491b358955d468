"""FULLY_CONNECTED of r1.15's optimized kernels on 8 bits: a single row goes through the matrix-vector kernel.

Operands, options and refusals: tflq/kernels/fully_connected/reference.py.
Source: TensorFlow r1.15 lite/kernels/internal/optimized/optimized_ops.h FullyConnected;
optimized/integer_ops/fully_connected.h; cpu_backend_gemm.h Gemm, with the NEON code of AArch64 by way of SSE.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.kernels.families.matrix_vector import gemmlowp
from tflq.kernels.fully_connected import tf1 as fully_connected
from tflq.kernels.fully_connected.reference import output_shape
from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.validity import tf1
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; the product's shape decides which output stage scales it."""
    shape = output_shape(node)
    stage = gemmlowp(arithmetic, shape[-1], node.input(1).shape[1], prod(shape[:-1]))
    return fully_connected.prepare(node, replace(arithmetic, requantize_dense=stage))


KERNELS = valid(tf1("opt"), *(replace(row, prepare=prepare) for row in fully_connected.KERNELS))
