"""CONV_2D of r1.15's optimized kernels on 8 bits: one position of one image goes through the matrix-vector kernel.

On int8 the fused activation is ignored, as in the reference kernels. Operands: tflq/kernels/conv_2d/reference.py.
Source: TensorFlow r1.15 lite/kernels/conv.cc EvalQuantized, EvalQuantizedPerChannel; optimized_ops.h Conv;
optimized/integer_ops/conv.h ConvPerChannel; cpu_backend_gemm.h Gemm, with the NEON code of AArch64 by way of SSE.
"""

from __future__ import annotations

from tflq.kernels.conv_2d.arm64 import by
from tflq.kernels.families.activation import without_activation
from tflq.kernels.families.matrix_vector import gemmlowp
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import tf1

KERNELS = valid(
    tf1("opt"),
    Kernel("CONV_2D", "int8 int8 int32 -> int8", without_activation(by(gemmlowp)), (1, 3)),
    Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", by(gemmlowp), (1, 3)),
)
