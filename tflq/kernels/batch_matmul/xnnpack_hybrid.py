"""BATCH_MATMUL of floats and int8 matrices by XNNPACK: rows quantized asymmetrically, whatever the option says.

Operands and options: tflq/kernels/batch_matmul/reference_hybrid.py. Refused: matrices that are computed, whose codes
the original reads before they are there; zero points of matrices; empty operands.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBatchMatMulNode; XNNPACK's batch_matrix_multiply_nc_qd8_f32_qc8w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.batch_matmul.reference import shapes
from tflq.kernels.batch_matmul.xnnpack import check_sizes, columns_of
from tflq.kernels.delegation import UNCLAIMED, delegate, has_filter_scales
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape, promising, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.contract import PairContraction, accumulators_int32
from tflq.numerics.dynamic_range_float32 import Rescale, quantize_rows_float32


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    adjoint: bool  # of x
    matrices: Array  # (..., K, N), codes as the contraction takes them
    scale: Array  # of the matrices, (..., 1, N), float32
    contraction: PairContraction
    rescale: Rescale


def takes(node: Node) -> bool:
    """Scales of y, if several, along the columns."""
    return has_filter_scales(node.input(1), columns_of(node))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scales are repeated over the matrices of y."""
    shape, (adjoint_x, adjoint_y), length = shapes(node)
    x, y = node.input(0), node.input(1)
    check_sizes(node, x, y)
    if y.value is None:
        raise UndefinedResultError(node.op, "the codes of y are read before they are computed")
    assert y.quantization is not None  # takes saw to it
    node.check(int(y.quantization.zero_point[0]) == 0, "zero point", y, expected=0)
    scale, leading = y.quantization.scale, y.shape[:-2]
    count = int(np.prod(leading)) * shape[-1]
    node.check(count % len(scale) == 0, "number of scales", y, expected=f"a divisor of {count}", got=len(scale))
    contraction = PairContraction.of(length, (-255, 255), (-128, 127))
    data = OpData(
        shape=shape,
        adjoint=adjoint_x,
        matrices=(y.value.swapaxes(-1, -2) if adjoint_y else y.value).astype(contraction.real),
        scale=np.resize(scale, count).reshape(*leading, 1, shape[-1]),
        contraction=contraction,
        rescale=arithmetic.xnnpack_rescale,
    )
    return Prepared((shape,), data, evaluate)


def evaluate(data: OpData, x: Array, y: Array) -> Array:
    """Rounding: the sum to float32, then as `rescale`."""
    left = np.ascontiguousarray(x.swapaxes(-1, -2) if data.adjoint else x)
    rows = quantize_rows_float32(left.reshape(-1, left.shape[-1]))
    centred = rows.codes.astype(data.contraction.real) - rows.zero_point.astype(data.contraction.real)[:, None]
    sums = accumulators_int32(data.contraction(centred.reshape(left.shape), data.matrices)).astype(np.float32)
    row_scale = rows.scale.reshape(*left.shape[:-1], 1)
    return data.rescale(sums, row_scale, data.scale, np.zeros(1, np.float32)).reshape(data.shape)


_ROWS = (delegate(Kernel("BATCH_MATMUL", "float32 int8 -> float32", prepare, (1, 4)), takes),)
KERNELS = (
    *valid(xnnpack("litert-2.3", cpu="x86-64"), *_ROWS),
    *valid(xnnpack("litert-2.3", cpu="arm64 wasm"), *promising(UNCLAIMED, _ROWS)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _ROWS)),
)
