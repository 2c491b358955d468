"""FULLY_CONNECTED: the reference's sums, scaled as ruy's matrix product scales them.

Operands, options and refusals: tflq/kernels/fully_connected/reference.py.
Source: LiteRT 2.3 fully_connected.cc EvalQuantized; optimized/integer_ops/fully_connected.h FullyConnected.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.families.unclaimed import beside_dense, unclaimed_floats
from tflq.kernels.fully_connected import reference
from tflq.kernels.fully_connected.reference import prepare_quantized
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic, prepared_real


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Real multipliers are those that Prepare quantizes."""
    gemm = replace(arithmetic, dense_real=prepared_real, requantize_dense=arithmetic.requantize_gemm)
    return prepare_quantized(node, gemm)


def prepare_shuffled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """What vector code makes of shuffled weights is not known here."""
    node.refuse("shuffled weights are not modelled under the optimized resolver")


KERNELS = (
    *valid(
        opt(),
        Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", prepare, (1, 14)),
        Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16 uint8", prepare_shuffled, (1, 14)),
    ),
    *valid(opt(), *unclaimed_floats(beside_dense(reference.KERNELS))),
)
