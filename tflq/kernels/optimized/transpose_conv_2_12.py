"""TRANSPOSE_CONV up to 2.12: the vector code of later releases; the bias alone says how wide 16-bit accumulators are.

Source: TensorFlow 2.12 optimized/integer_ops/transpose_conv.h, optimized_ops.h TransposeConvV2.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.arm64.transpose_conv_2_14 import KERNELS as BYTES
from tflq.kernels.earlier.transpose_conv import KERNELS as INT16
from tflq.kernels.families.vector_blocks import requantizing
from tflq.kernels.optimized.depthwise_conv_2d import eight_channels

KERNELS = (*BYTES, *(replace(row, prepare=requantizing(row.prepare, eight_channels)) for row in INT16))
