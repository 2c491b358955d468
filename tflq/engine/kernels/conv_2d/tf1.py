"""CONV_2D of r1.15 on 8 bits: int8 ignores the fused activation, only the type's range clamps.

Everything else is as in the reference kernel; uint8 and float32 honour the activation. In the optimized kernels, one
position of one image goes through the matrix-vector kernel.
Source: TensorFlow r1.15 lite/kernels/conv.cc EvalQuantized, EvalQuantizedPerChannel; reference/integer_ops/conv.h,
optimized/integer_ops/conv.h ConvPerChannel; optimized_ops.h Conv; cpu_backend_gemm.h Gemm, with the NEON code of
AArch64 by way of SSE.
"""

from __future__ import annotations

from tflq.engine.kernels.conv_2d.optimized import by
from tflq.engine.kernels.conv_2d.reference import prepare_quantized
from tflq.engine.kernels.families.activation import without_activation
from tflq.engine.kernels.families.matrix_vector import gemmlowp
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import tf1

KERNELS = (
    *valid(tf1(), Kernel("CONV_2D", "int8 int8 int32 -> int8", without_activation(prepare_quantized), (1, 3))),
    *valid(
        tf1("opt"),
        Kernel("CONV_2D", "int8 int8 int32 -> int8", without_activation(by(gemmlowp)), (1, 3)),
        Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", by(gemmlowp), (1, 3)),
    ),
)
