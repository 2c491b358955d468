"""The operators that XNNPACK takes, each with the files that hold its rows."""

from __future__ import annotations

from collections.abc import Collection

from tflq.kernels.kernel import KernelTable
from tflq.kernels.xnnpack.delegation import Delegation

_FILES = {
    "ADD": "add",
    "CONV_2D": "conv_2d conv_2d_hybrid",
    "DEPTHWISE_CONV_2D": "depthwise_conv_2d",
    "DEQUANTIZE": "dequantize",
    "FULLY_CONNECTED": "fully_connected fully_connected_hybrid",
    "LEAKY_RELU": "leaky_relu",
    "MEAN": "mean",
    "MUL": "mul",
    "QUANTIZE": "quantize",
    "RESIZE_BILINEAR": "resize_bilinear",
    "SUB": "sub",
    "SUM": "sum",
    "TRANSPOSE_CONV": "transpose_conv",
}

#: Operators whose float results XNNPACK computes in ways that are not reproduced.
_UNCLAIMED = (
    "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "COS", "DEPTHWISE_CONV_2D", "ELU", "EXP", "FULLY_CONNECTED", "GELU",
    "HARD_SWISH", "LOG", "LOGISTIC", "MEAN", "RESIZE_BILINEAR", "ROUND", "RSQRT", "SIN", "SOFTMAX", "SQRT",
    "SUM", "TANH", "TRANSPOSE_CONV",
)  # fmt: skip


def xnnpack_over(base: KernelTable, leaving: Collection[str] = ()) -> KernelTable:
    """XNNPACK's rows but those of the files in `leaving`, with those of `base` for whatever it leaves."""
    files = {op: " ".join(name for name in names.split() if name not in leaving) for op, names in _FILES.items()}
    return Delegation("tflq.kernels.xnnpack", files, base, _UNCLAIMED)
