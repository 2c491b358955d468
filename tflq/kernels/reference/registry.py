"""The table of LiteRT's reference kernels: every kernel file, named once."""

from __future__ import annotations

from tflq.kernels.kernel import table
from tflq.kernels.reference import (
    add,
    average_pool_2d,
    batch_matmul,
    conv_2d,
    depthwise_conv_2d,
    dequantize,
    fully_connected,
    leaky_relu,
    max_pool_2d,
    mul,
    quantize,
    sub,
    transpose_conv,
)

REFERENCE = table(
    add.KERNELS,
    average_pool_2d.KERNELS,
    batch_matmul.KERNELS,
    conv_2d.KERNELS,
    depthwise_conv_2d.KERNELS,
    dequantize.KERNELS,
    fully_connected.KERNELS,
    leaky_relu.KERNELS,
    max_pool_2d.KERNELS,
    mul.KERNELS,
    quantize.KERNELS,
    sub.KERNELS,
    transpose_conv.KERNELS,
)
