"""BATCH_MATMUL int8 by ruy, as releases up to 2.14 have it; later ones multiply as the reference does.

An int32 output holds products of centred codes; the reference does not look at zero points there.

Operands, options and refusals: tflq/kernels/reference/batch_matmul.py.
Source: TensorFlow 2.14 batch_matmul.cc EvalInt8Int8; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.blocks import requantizing
from tflq.kernels.contraction import code_span
from tflq.kernels.earlier.batch_matmul import unfolded
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.optimized.conv_2d import gemm
from tflq.kernels.reference.batch_matmul import prepare_quantized, prepare_sums, shapes
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.contract import PairContraction


def prepare_centred_sums(node: Node, arithmetic: Arithmetic) -> Prepared:
    """No scales."""
    made = prepare_sums(node, arithmetic)
    _, _, length = shapes(node)
    x, y = node.input(0), node.input(1)
    contraction = PairContraction.of(length, code_span(x), code_span(y))
    return replace(made, data=replace(made.data, zero_points=(x.zero_point, y.zero_point), contraction=contraction))


KERNELS = (
    Kernel("BATCH_MATMUL", "int8 int8 -> int8", unfolded(requantizing(prepare_quantized, gemm)), (1, 4)),
    Kernel("BATCH_MATMUL", "int8 int8 -> int32", unfolded(prepare_centred_sums), (1, 4)),
)
