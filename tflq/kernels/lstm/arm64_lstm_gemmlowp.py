"""LSTM, kernel type BASIC on 8 bits, as releases up to 2.14 have it: by gemmlowp and the matrix-vector kernel.

Source: TensorFlow 2.14 lstm.cc basic, cpu_backend_gemm.h on AArch64.
"""

from __future__ import annotations

from tflq.kernels.families.matrix_vector import gemmlowp
from tflq.kernels.kernel import valid
from tflq.kernels.lstm.arm64_lstm import rows
from tflq.kernels.validity import tflite

KERNELS = valid(tflite(until="tflite-2.14", cpu="arm64"), *rows(gemmlowp))
