"""LSTM of r1.15, kernel type BASIC on 8 bits: gemmlowp and the matrix-vector kernel make the product of all gates.

The package's builds have the NEON code of AArch64 by way of SSE: one row is scaled as there, in both resolvers.
Operands and checks: tflq/kernels/lstm/lstm.py.
Source: TensorFlow r1.15 lite/kernels/lstm.cc basic; optimized_ops.h LstmCell; cpu_backend_gemm.h Gemm.
"""

from __future__ import annotations

from tflq.kernels.families.matrix_vector import gemmlowp
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.lstm.arm64_lstm import by
from tflq.kernels.validity import tf1, tflite

_ROWS = (Kernel("LSTM", "uint8 uint8 uint8 int32 int16 -> uint8 int16 uint8 int16", by(gemmlowp), (1, 3)),)
KERNELS = (*valid(tf1(), *_ROWS), *valid(tflite(until="tflite-2.12", cpu="x86-64", vectors=True), *_ROWS))
