"""CONV_2D up to 2.12, built with NEON code by way of SSE: products of one column have the matrix-vector kernel.

Other products are ruy's for int8 and gemmlowp's for uint8.
Source: TensorFlow 2.12 lite/kernels/cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.
"""

from __future__ import annotations

from tflq.kernels.conv_2d import arm64
from tflq.kernels.families.matrix_vector import by_type, gemmlowp, ruy
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

KERNELS = valid(opt(until="tflite-2.12", cpu="x86-64", vectors=True), *by_type(arm64.rows(ruy), arm64.rows(gemmlowp)))
