"""Products of one column, as builds up to 2.12 have them whose NEON code runs by way of SSE: the matrix-vector kernel.

Other products are ruy's for int8 and gemmlowp's for uint8. The basic LSTM multiplies with gemmlowp in either resolver.
Source: TensorFlow 2.12 lite/kernels/cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.arm64 import conv_2d, fully_connected
from tflq.kernels.arm64.matrix_vector import gemmlowp, ruy
from tflq.kernels.kernel import Kernel
from tflq.kernels.tf1.lstm import KERNELS as LSTM


def _by_type(files: tuple[tuple[Kernel, ...], tuple[Kernel, ...]]) -> tuple[Kernel, ...]:
    """int8 rows of the first, uint8 rows of the second."""
    first, second = files
    return (
        *(row for row in first if row.signature.starts_with(TensorType.INT8)),
        *(row for row in second if row.signature.starts_with(TensorType.UINT8)),
    )


KERNELS = (
    *_by_type((conv_2d.rows(ruy), conv_2d.rows(gemmlowp))),
    *_by_type((fully_connected.rows(ruy), fully_connected.rows(gemmlowp))),
    *LSTM,
)
