"""TRANSPOSE_CONV up to 2.12: the vector code of later releases for 8 bits; 16 bits have none yet.

Source: TensorFlow 2.12 optimized/integer_ops/transpose_conv.h, optimized_ops.h TransposeConvV2.
"""

from __future__ import annotations

from tflq.kernels.arm64.transpose_conv_2_14 import KERNELS

__all__ = ["KERNELS"]
