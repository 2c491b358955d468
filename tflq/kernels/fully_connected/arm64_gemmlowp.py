"""FULLY_CONNECTED int8 and uint8 as releases up to 2.14 have it: by gemmlowp and the matrix-vector kernel.

Source: TensorFlow 2.14 fully_connected.cc, cpu_backend_gemm.h on AArch64.
"""

from __future__ import annotations

from tflq.kernels.families.matrix_vector import gemmlowp
from tflq.kernels.fully_connected.arm64 import rows
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

KERNELS = valid(opt(until="tflite-2.14", cpu="arm64"), *rows(gemmlowp))
