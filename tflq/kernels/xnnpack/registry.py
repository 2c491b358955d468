"""The operators that XNNPACK takes, each with the files that hold its rows."""

from __future__ import annotations

from tflq.kernels.kernel import KernelTable
from tflq.kernels.xnnpack.delegation import Delegation

_FILES = {
    "ADD": "add",
    "CONV_2D": "conv_2d",
    "DEPTHWISE_CONV_2D": "depthwise_conv_2d",
    "DEQUANTIZE": "dequantize",
    "FULLY_CONNECTED": "fully_connected",
    "LEAKY_RELU": "leaky_relu",
    "MEAN": "mean",
    "MUL": "mul",
    "QUANTIZE": "quantize",
    "RESIZE_BILINEAR": "resize_bilinear",
    "SUB": "sub",
    "TRANSPOSE_CONV": "transpose_conv",
}


def xnnpack_over(base: KernelTable) -> KernelTable:
    """XNNPACK's rows, with those of `base` for whatever it leaves."""
    return Delegation("tflq.kernels.xnnpack", _FILES, base)
