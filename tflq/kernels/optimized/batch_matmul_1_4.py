"""BATCH_MATMUL int8 by ruy, as releases up to LiteRT 1.4 have it; later ones multiply as the reference does.

Operands, options and refusals: tflq/kernels/earlier/batch_matmul.py.
Source: LiteRT 1.4 batch_matmul.cc EvalInt8Int8; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.earlier.batch_matmul import KERNELS as EARLIER
from tflq.kernels.earlier.batch_matmul import unfolded
from tflq.kernels.families.vector_blocks import requantizing
from tflq.kernels.kernel import Kernel
from tflq.kernels.optimized.conv_2d import gemm
from tflq.kernels.reference.batch_matmul import prepare_quantized

KERNELS = (
    Kernel("BATCH_MATMUL", "int8 int8 -> int8", unfolded(requantizing(prepare_quantized, gemm)), (1, 4)),
    *(row for row in EARLIER if row.signature.makes(TensorType.INT16, TensorType.INT32)),
)
