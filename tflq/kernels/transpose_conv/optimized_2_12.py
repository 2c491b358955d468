"""TRANSPOSE_CONV up to 2.12: the vector code of later releases; the bias alone says how wide 16-bit accumulators are.

Source: TensorFlow 2.12 optimized/integer_ops/transpose_conv.h, optimized_ops.h TransposeConvV2.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.families.vector_blocks import eight_channels, requantizing
from tflq.kernels.kernel import valid
from tflq.kernels.transpose_conv.arm64_2_14 import KERNELS as BYTES
from tflq.kernels.transpose_conv.earlier import KERNELS as INT16
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(until="tflite-2.12", cpu="x86-64", vectors=True),
    *BYTES,
    *(replace(row, prepare=requantizing(row.prepare, eight_channels)) for row in INT16),
)
