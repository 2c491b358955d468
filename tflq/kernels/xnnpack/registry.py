"""The operators that XNNPACK takes, each with the files that hold its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from tflq.kernels.table import KernelTable
from tflq.kernels.xnnpack.delegation import delegation

_FILES = {
    "ADD": "add elementwise",
    "BATCH_MATMUL": "batch_matmul batch_matmul_hybrid",
    "CEIL": "elementwise",
    "CONV_2D": "conv_2d conv_2d_hybrid",
    "DEPTHWISE_CONV_2D": "depthwise_conv_2d",
    "DEQUANTIZE": "dequantize",
    "DIV": "elementwise",
    "FLOOR": "elementwise",
    "FULLY_CONNECTED": "fully_connected fully_connected_hybrid",
    "LEAKY_RELU": "leaky_relu elementwise",
    "LOGISTIC": "logistic",
    "MEAN": "mean",
    "MUL": "mul elementwise",
    "NEG": "elementwise",
    "PRELU": "elementwise",
    "QUANTIZE": "quantize",
    "REDUCE_MAX": "extremes",
    "REDUCE_MIN": "extremes",
    "RELU": "elementwise",
    "RELU6": "elementwise",
    "RELU_N1_TO_1": "elementwise",
    "RESIZE_BILINEAR": "resize_bilinear",
    "SQUARE": "elementwise",
    "SQUARED_DIFFERENCE": "elementwise",
    "SUB": "sub elementwise",
    "SUM": "sum",
    "TRANSPOSE_CONV": "transpose_conv transpose_conv_hybrid",
}

#: Files of hybrid forms that were held against the runtime on x86-64 only.
ONLY_SEEN_ON_X86 = ("batch_matmul_hybrid", "transpose_conv_hybrid")

#: Operators whose float results XNNPACK computes in ways that are not reproduced.
_UNCLAIMED = (
    "AVERAGE_POOL_2D",
    "BATCH_MATMUL",
    "CONV_2D",
    "COS",
    "DEPTHWISE_CONV_2D",
    "ELU",
    "EXP",
    "FULLY_CONNECTED",
    "GELU",
    "HARD_SWISH",
    "LOG",
    "LOGISTIC",
    "MAXIMUM",
    "MAX_POOL_2D",
    "MEAN",
    "MINIMUM",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "RESIZE_BILINEAR",
    "ROUND",
    "RSQRT",
    "SIN",
    "SOFTMAX",
    "SQRT",
    "SUM",
    "TANH",
    "TRANSPOSE_CONV",
)


#: Files of hybrid forms.
HYBRID = ("batch_matmul_hybrid", "conv_2d_hybrid", "fully_connected_hybrid", "transpose_conv_hybrid")


def xnnpack_over(
    base: KernelTable,
    leaving: Collection[str] = (),
    doubtful: Collection[str] = (),
    instead: Mapping[str, str] = MappingProxyType({}),
) -> KernelTable:
    """XNNPACK's rows but those of the files in `leaving`, with those of `base` for whatever it leaves.

    Floats of operators whose files are left are not claimed, nor the rows of those in `doubtful`. `instead` names the
    files of operators that a release computes in its own way.
    """
    known = {**_FILES, **instead}
    files = {op: " ".join(name for name in names.split() if name not in leaving) for op, names in known.items()}
    left = [op for op, names in known.items() if files[op] != names]
    return delegation("tflq.kernels.xnnpack", files, base, {*_UNCLAIMED, *left}, doubtful)
