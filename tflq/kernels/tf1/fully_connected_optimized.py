"""FULLY_CONNECTED of r1.15's optimized kernels on 8 bits: a single row goes through vector code of its own.

Operands, options and refusals: tflq/kernels/reference/fully_connected.py.
Source: TensorFlow r1.15 lite/kernels/internal/optimized/optimized_ops.h FullyConnected, FullyConnectedAsGEMV;
optimized/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference.fully_connected import output_shape
from tflq.kernels.tf1 import fully_connected
from tflq.numerics.arithmetic import Arithmetic

#: What the vector code needs.
SMALLEST_DEPTH, FEWEST_UNITS = 8, 4


def is_vector_product(node: Node) -> bool:
    """Whether there is one row, and enough of everything."""
    units, depth = node.input(1).shape
    rows = prod(output_shape(node)[:-1])
    return rows == 1 and depth >= SMALLEST_DEPTH and units >= FEWEST_UNITS


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """A vector product is requantized by vector instructions."""
    if is_vector_product(node):
        arithmetic = replace(arithmetic, requantize_dense=arithmetic.requantize_simd)
    return fully_connected.prepare(node, arithmetic)


KERNELS = tuple(Kernel("FULLY_CONNECTED", f"{t} {t} int32? -> {t}", prepare, (1, 4)) for t in ("uint8", "int8"))
