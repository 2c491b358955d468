"""CONV_2D int8 and uint8 as releases up to 2.14 have it: by gemmlowp and the matrix-vector kernel.

Source: TensorFlow 2.14 conv.cc, cpu_backend_gemm.h on AArch64.
"""

from __future__ import annotations

from tflq.kernels.arm64.conv_2d import rows
from tflq.kernels.arm64.matrix_vector import gemmlowp

KERNELS = rows(gemmlowp)
