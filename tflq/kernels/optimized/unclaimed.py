"""Float operators whose bits under the optimized resolver are not reproduced: reference kernels, not claimed."""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.exactness import close
from tflq.kernels.kernel import Kernel
from tflq.kernels.reference import (
    batch_matmul,
    conv_2d,
    conv_3d,
    conv_3d_transpose,
    depthwise_conv_2d,
    fully_connected,
    hard_swish,
    l2_pool_2d,
    local_response_normalization,
    log_softmax,
    logistic,
    mean,
    resize_bilinear,
    sum,
    tanh,
    transpose_conv,
)

UNCLAIMED = close("computed by Eigen or vector code, in an order and with functions of its own")

FILES = (
    batch_matmul,
    conv_2d,
    conv_3d,
    conv_3d_transpose,
    depthwise_conv_2d,
    fully_connected,
    hard_swish,
    l2_pool_2d,
    local_response_normalization,
    log_softmax,
    logistic,
    mean,
    resize_bilinear,
    sum,
    tanh,
    transpose_conv,
)

#: Those whose floats are reproduced where all operands are dense floats.
REPRODUCED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def _is_reproduced(row: Kernel) -> bool:
    dense_floats = row.signature.starts_with(TensorType.FLOAT32, TensorType.FLOAT32) and not row.sparse
    return row.op in REPRODUCED and dense_floats


KERNELS = tuple(
    replace(row, exactness=UNCLAIMED)
    for file in FILES
    for row in file.KERNELS
    if row.signature.is_float and not _is_reproduced(row)
)
