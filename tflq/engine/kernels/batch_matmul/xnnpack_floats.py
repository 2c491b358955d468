"""BATCH_MATMUL of float32 by XNNPACK. Operands and options: tflq/engine/kernels/batch_matmul/reference.py.

A chain of fused multiply-adds from 0 on, matrix by matrix. Codes of a matrix are multiplied as they are, and the sum by
their scale (tflq/engine/interpreter/matrices.py).
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBatchMatMulNode; XNNPACK's batch_matrix_multiply_nc_f32, f32-gemm,
f32-qc8w-gemm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.batch_matmul.shapes import shapes
from tflq.engine.kernels.delegation import delegate, has_shape
from tflq.engine.kernels.families.fused_products import matrix_products
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.flushing import to_normal_float32
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    adjoint: tuple[bool, bool]
    scale: np.float32 | None = None  # real units per LSB of codes


def takes(node: Node) -> bool:
    """Return whether no operand is empty."""
    return has_shape(node.input(0), 2) and has_shape(node.input(1), 2)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    shape, adjoint, _ = shapes(node)
    return Prepared((shape,), OpData(shape, adjoint, node.input(1).scale if node.is_of_codes else None), evaluate)


def evaluate(data: OpData, x: Array, y: Array) -> Array:
    """Rounding: one for each product and sum, in order of k, and one for the scale of codes."""
    left = np.ascontiguousarray(x.swapaxes(-1, -2) if data.adjoint[0] else x)
    right = y.swapaxes(-1, -2) if data.adjoint[1] else y
    sums = matrix_products(left, right.astype(np.float32, copy=False), data.shape)
    if data.scale is None:
        return sums
    with np.errstate(all="ignore"):
        return to_normal_float32(sums.astype(np.float64) * data.scale)


KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    replace(delegate(Kernel("BATCH_MATMUL", "float32 float32 -> float32", prepare, (1, 4)), takes), reads_codes=True),
)
