"""Matrix products on AArch64: which of them go to the matrix-vector kernel, and how either kind is scaled.

Source: LiteRT 2.3 and TensorFlow 2.14 cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.engine.kernels.kernel import Kernel
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import DoubleRounding, SaturatedTwice, StageOf
from tflq.model.ir import TensorType

#: The scaling of a product, by its numbers of units, summands and columns.
Scaling = Callable[[Arithmetic, int, int, int], StageOf]
#: Rows of the matrix that the matrix-vector kernel takes at a time, and the columns that it needs at least.
ROWS, COLUMNS = 4, 8


def ruy(arithmetic: Arithmetic, units: int, depth: int, columns: int) -> StageOf:
    """Return the scaling of (units, depth) times (depth, columns) by ruy."""
    return _vector_code(arithmetic) if is_matrix_vector(units, depth, columns) else arithmetic.requantize_gemm


def gemmlowp(arithmetic: Arithmetic, units: int, depth: int, columns: int) -> StageOf:
    """Return the output stage of gemmlowp's matrix products: the reference's, except for one row or column."""
    return _vector_code(arithmetic) if is_matrix_vector(units, depth, columns) else arithmetic.requantize


def scalar_gemmlowp(arithmetic: Arithmetic, units: int, depth: int, columns: int) -> StageOf:
    """Return the output stage of gemmlowp in a build without vector code, where shifts to the left saturate."""
    return SaturatedTwice.of if arithmetic.requantize == DoubleRounding.of else arithmetic.requantize


def is_matrix_vector(units: int, depth: int, columns: int) -> bool:
    """Return whether the product is a vector, of a matrix that is large enough for vector registers."""
    return columns == 1 and units >= ROWS and depth >= COLUMNS


def _vector_code(arithmetic: Arithmetic) -> StageOf:
    return arithmetic.requantize_simd


def by_type(quantized: tuple[Kernel, ...], unsigned: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return the int8 rows of the first and the uint8 rows of the second."""
    return (
        *(row for row in quantized if row.signature.starts_with(TensorType.INT8)),
        *(row for row in unsigned if row.signature.starts_with(TensorType.UINT8)),
    )
