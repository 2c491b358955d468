"""CONV_2D of 16-bit activations: where accumulators have 32 bits, ruy makes the product; else the reference does.

Source: LiteRT 2.3 conv.cc EvalQuantizedPerChannel16x8; optimized/integer_ops/conv.h ConvPerChannel (int16).
"""

from __future__ import annotations

from tflq.kernels.conv_2d.optimized import multiplied
from tflq.kernels.families.vector_blocks import gemm
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt

KERNELS = valid(
    opt("litert-1.0"), Kernel("CONV_2D", "int16 int8|int4|int16 int32|int64 -> int16", multiplied(gemm), (1, 8))
)
