"""BATCH_MATMUL of int8 to int32 from 2.10 to LiteRT 1.2: products of centred codes.

Releases before and after do not look at zero points there. int8 is that of batch_matmul_1_4.py.
Operands, options and refusals: tflq/kernels/batch_matmul/reference.py.
Source: TensorFlow 2.14 batch_matmul.cc EvalInt8Int32; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.batch_matmul.earlier import unfolded
from tflq.kernels.batch_matmul.optimized_1_4 import KERNELS as BY_RUY
from tflq.kernels.batch_matmul.reference import prepare_sums, shapes
from tflq.kernels.families.contraction import code_span
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.contract import PairContraction


def prepare_centred_sums(node: Node, arithmetic: Arithmetic) -> Prepared:
    """No scales."""
    prepared = prepare_sums(node, arithmetic)
    _, _, length = shapes(node)
    x, y = node.input(0), node.input(1)
    contraction = PairContraction.of(length, code_span(x), code_span(y))
    return replace(
        prepared, data=replace(prepared.data, zero_points=(x.zero_point, y.zero_point), contraction=contraction)
    )


KERNELS = valid(
    opt(until="litert-1.0"),
    BY_RUY[0],
    Kernel("BATCH_MATMUL", "int8 int8 -> int32", unfolded(prepare_centred_sums), (1, 4)),
)
