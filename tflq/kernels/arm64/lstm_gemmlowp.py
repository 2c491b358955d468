"""LSTM, kernel type BASIC on 8 bits, as releases up to 2.14 have it: by gemmlowp and the matrix-vector kernel.

Source: TensorFlow 2.14 lstm.cc basic, cpu_backend_gemm.h on AArch64.
"""

from __future__ import annotations

from tflq.kernels.arm64.lstm import rows
from tflq.kernels.arm64.matrix_vector import gemmlowp

KERNELS = rows(gemmlowp)
