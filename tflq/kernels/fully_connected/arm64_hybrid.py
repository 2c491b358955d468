"""FULLY_CONNECTED, hybrid: the scaled sum and what is there already are added with one rounding.

Operands, options and refusals: tflq/kernels/fully_connected/reference_hybrid.py.
Source: LiteRT 2.3 neon_tensor_utils.cc NeonMatrixBatchVectorMultiplyAccumulate, NeonReductionSumVector on AArch64.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.fully_connected.reference_hybrid import prepare_with
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt, ref
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.dynamic_range import ByteMatrix, Floats, Rows, quantize_rows
from tflq.numerics.multiply_add import fused


class FusedMatrix(ByteMatrix):
    """Signs of -128 are kept, sums of rows do not wrap."""

    __slots__ = ()

    def accumulate(self, rows: Rows, out: Floats) -> None:
        """Add the scaled products to `out`. Rounding: the product of the scales, then product and sum at once (FMA)."""
        sums = self.sums(rows.codes)
        if not rows.is_centred:
            sums -= rows.zero_point[:, None] * self.row_sums
        out[...] = fused(sums.astype(np.float32), rows.scale[:, None] * self.scale, out)


def fused_matrix(weights: Array, scale: np.float32 | Array) -> ByteMatrix:
    """The matrix of these weights, read as int8."""
    codes = np.ascontiguousarray(weights).view(np.int8)
    return replace(FusedMatrix.of(weights, scale, keeps_signs=True), row_sums=codes.sum(axis=1, dtype=np.int32))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The reference's, with another matrix."""
    return prepare_with(node, fused_matrix, quantize_rows)


_ROW = Kernel("FULLY_CONNECTED", "float32 int8|uint8|int4|int2 float32? -> float32", prepare, (1, 14), session=True)
KERNELS = (*valid(ref("litert-1.0", cpu="arm64"), _ROW), *valid(opt("litert-1.0", cpu="arm64"), _ROW))
