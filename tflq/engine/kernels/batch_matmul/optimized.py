"""BATCH_MATMUL of the optimized resolver. Operands, options and refusals: kernels/batch_matmul/reference.py.

Floats are multiplied as in the reference; up to LiteRT 2.0 they are not claimed. ruy multiplies int8 up to LiteRT 1.4;
later releases multiply as the reference does. From 2.10 to LiteRT 1.2, int8 to int32 takes products of centred codes;
other releases ignore zero points there.
Source: LiteRT 2.3 batch_matmul.cc Eval, Register_BATCH_MATMUL. LiteRT 1.4 and TensorFlow 2.14 batch_matmul.cc
EvalInt8Int8, EvalInt8Int32; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.batch_matmul import reference
from tflq.engine.kernels.batch_matmul.reference import UNFOLDED, prepare_quantized, prepare_sums, unfold
from tflq.engine.kernels.batch_matmul.shapes import shapes
from tflq.engine.kernels.families.contraction import code_span
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import gemm, requantizing
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.contract import PairContraction
from tflq.model.ir import TensorType


def prepare_centred_sums(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without scales."""
    prepared = prepare_sums(node, arithmetic)
    _, _, length = shapes(node)
    x, y = node.input(0), node.input(1)
    contraction = PairContraction.of(length, code_span(x), code_span(y))
    return replace(
        prepared, data=replace(prepared.data, zero_points=(x.zero_point, y.zero_point), contraction=contraction)
    )


_FLOATS = unclaimed_floats(reference.ROWS)
_BY_RUY = Kernel("BATCH_MATMUL", "int8 int8 -> int8", unfold(requantizing(prepare_quantized, gemm)), (1, 4))
_OTHERS = tuple(row for row in UNFOLDED if row.signature.makes(TensorType.INT16, TensorType.INT32))

KERNELS = (
    *valid(opt(until="litert-2.0"), *_FLOATS),
    *valid(opt("litert-1.4", "litert-1.4"), _BY_RUY, *_OTHERS),
    *valid(opt(until="tflite-2.14"), *_FLOATS),
    *valid(
        opt(until="litert-1.0"),
        _BY_RUY,
        Kernel("BATCH_MATMUL", "int8 int8 -> int32", unfold(prepare_centred_sums), (1, 4)),
    ),
    *valid(opt(until="tflite-2.9"), _BY_RUY, *_OTHERS),
)
