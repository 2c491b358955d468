"""Float operators that Eigen computes under the optimized resolver: reference kernels, whose bits are not claimed.

Eigen adds in blocks whose size follows from the CPU's caches, and takes its own vector functions.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.kernel import close
from tflq.kernels.reference import (
    batch_matmul,
    conv_2d,
    depthwise_conv_2d,
    fully_connected,
    hard_swish,
    log_softmax,
    logistic,
    mean,
    softmax,
    tanh,
    transpose_conv,
)

UNCLAIMED = close("computed by Eigen or vector code, in an order and with functions of its own")

FILES = (
    batch_matmul, conv_2d, depthwise_conv_2d, fully_connected, hard_swish, log_softmax, logistic, mean, softmax, tanh,
    transpose_conv,
)  # fmt: skip

KERNELS = tuple(
    replace(row, exactness=UNCLAIMED) for file in FILES for row in file.KERNELS if row.types.endswith("float32")
)
