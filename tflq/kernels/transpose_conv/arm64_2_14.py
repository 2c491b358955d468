"""TRANSPOSE_CONV int8 and uint8 as releases up to 2.14 have it: the vector code of later ones; 16 bits have none yet.

Source: TensorFlow 2.14 optimized/integer_ops/transpose_conv.h, optimized_ops.h TransposeConvV2 on AArch64.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.kernel import valid
from tflq.kernels.transpose_conv import optimized as transpose_conv
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(until="tflite-2.14", cpu="arm64"),
    *(kernel for kernel in transpose_conv.QUANTIZED if not kernel.signature.makes(TensorType.INT16)),
)
