"""TRANSPOSE_CONV int8 and uint8 as releases up to 2.14 have it: the vector code of later ones; 16 bits have none yet.

Source: TensorFlow 2.14 optimized/integer_ops/transpose_conv.h, optimized_ops.h TransposeConvV2 on AArch64.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.optimized import transpose_conv

KERNELS = tuple(kernel for kernel in transpose_conv.KERNELS if not kernel.signature.makes(TensorType.INT16))
