"""BATCH_MATMUL int8 by ruy, as releases up to 2.14 have it; later ones multiply as the reference does.

Operands, options and refusals: tflq/kernels/reference/batch_matmul.py.
Source: TensorFlow 2.14 batch_matmul.cc EvalInt8Int8; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

from tflq.kernels.blocks import requantizing
from tflq.kernels.kernel import Kernel
from tflq.kernels.optimized.conv_2d import gemm
from tflq.kernels.reference.batch_matmul import prepare_quantized

KERNELS = (Kernel("BATCH_MATMUL", "int8 int8 -> int8", requantizing(prepare_quantized, gemm), (1, 4)),)
