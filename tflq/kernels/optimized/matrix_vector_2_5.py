"""FULLY_CONNECTED up to 2.5 in builds with vector code: as in 2.12, but several weight scales read as 0.

Source: TensorFlow 2.5 lite/kernels/cpu_backend_gemm.h Gemm; fully_connected.cc EvalQuantized.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.earlier.fully_connected_2_9 import one_scale
from tflq.kernels.optimized.matrix_vector_2_12 import KERNELS as VECTORS_2_12

KERNELS = tuple(
    replace(row, prepare=one_scale(row.prepare))
    for row in VECTORS_2_12
    if row.op == "FULLY_CONNECTED" and row.signature.starts_with(TensorType.INT8)
)
