"""CONV_2D uint8 by ruy, as releases after 2.14 have it (those before multiply with gemmlowp, which rounds as the
reference does).

Source: LiteRT 2.3 conv.cc EvalQuantized; optimized_ops.h Conv; cpu_backend_gemm.
"""

from __future__ import annotations

from tflq.kernels.conv_2d.optimized import multiplied
from tflq.kernels.families.vector_blocks import gemm
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt

KERNELS = valid(opt("litert-1.0"), Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", multiplied(gemm), (1, 8)))
