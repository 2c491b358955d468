"""LSTM, kernel type BASIC on 8 bits: ruy and the matrix-vector kernel make the product of all gates, in any resolver.

Operands and refusals: tflq/kernels/lstm/lstm.py.
Source: LiteRT 2.3 lstm.cc basic; optimized_ops.h LstmCell; cpu_backend_gemm.h on AArch64.
"""

from __future__ import annotations

from tflq.kernels.families.matrix_vector import Scaling, ruy
from tflq.kernels.families.recurrent.lstm_basic import WEIGHTS, prepare_with
from tflq.kernels.families.vector_blocks import Prepare
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def by(scaling: Scaling) -> Prepare:
    """Gates scaled as the shape of their product asks for."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        weights, x = node.input(WEIGHTS), node.input(0)
        node.check(len(weights.shape) == 2 and len(x.shape) >= 1, "number of dimensions", weights, expected=2)
        return prepare_with(node, scaling(arithmetic, weights.shape[0], weights.shape[1], x.shape[0]))

    return prepare


def rows(scaling: Scaling) -> tuple[Kernel, ...]:
    """The 8-bit form."""
    return (Kernel("LSTM", "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16", by(scaling), (1, 4)),)


KERNELS = valid(tflite("litert-1.0", cpu="arm64"), *rows(ruy))
