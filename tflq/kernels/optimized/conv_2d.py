"""CONV_2D int8: the reference's sums, scaled as ruy's matrix product scales them.

Operands, options and refusals: tflq/kernels/reference/conv_2d.py.
Source: LiteRT 2.3 conv.cc EvalQuantizedPerChannel; optimized/integer_ops/conv.h ConvPerChannel; ruy kernel_avx.cc.
"""

from __future__ import annotations

from tflq.kernels.blocks import requantizing
from tflq.kernels.kernel import Kernel
from tflq.kernels.reference.conv_2d import prepare_quantized
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import StageOf


def gemm(arithmetic: Arithmetic) -> StageOf:
    """The scaling of a matrix product."""
    return arithmetic.requantize_gemm


KERNELS = (Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", requantizing(prepare_quantized, gemm), (1, 8)),)
