"""FULLY_CONNECTED up to 2.12, built with NEON code by way of SSE: one column has the matrix-vector kernel.

Other products are ruy's for int8 and gemmlowp's for uint8.
Source: TensorFlow 2.12 lite/kernels/cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.
Up to 2.5 several weight scales read as 0. Source: TensorFlow 2.5 fully_connected.cc EvalQuantized.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.families.matrix_vector import by_type, gemmlowp, ruy
from tflq.kernels.fully_connected import arm64
from tflq.kernels.fully_connected.earlier_2_9 import one_scale
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

_ROWS = by_type(arm64.rows(ruy), arm64.rows(gemmlowp))
KERNELS = (
    *valid(opt(until="tflite-2.12", cpu="x86-64", vectors=True), *_ROWS),
    *valid(
        opt(until="tf-2.5", vectors=True),
        *(replace(row, prepare=one_scale(row.prepare)) for row in _ROWS if row.signature.starts_with(TensorType.INT8)),
    ),
)
