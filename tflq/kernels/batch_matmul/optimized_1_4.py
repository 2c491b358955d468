"""BATCH_MATMUL int8 by ruy, as releases up to LiteRT 1.4 have it; later ones multiply as the reference does.

Operands, options and refusals: tflq/kernels/batch_matmul/earlier.py.
Source: LiteRT 1.4 batch_matmul.cc EvalInt8Int8; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.batch_matmul.earlier import KERNELS as EARLIER
from tflq.kernels.batch_matmul.earlier import unfolded
from tflq.kernels.batch_matmul.reference import prepare_quantized
from tflq.kernels.families.vector_blocks import gemm, requantizing
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt

_ROWS = (
    Kernel("BATCH_MATMUL", "int8 int8 -> int8", unfolded(requantizing(prepare_quantized, gemm)), (1, 4)),
    *(row for row in EARLIER if row.signature.makes(TensorType.INT16, TensorType.INT32)),
)
KERNELS = (*valid(opt(until="tflite-2.9"), *_ROWS), *valid(opt("litert-1.4", "litert-1.4"), *_ROWS))
