"""The table of LiteRT's reference kernels: every kernel file, named once."""

from __future__ import annotations

from tflq.kernels.kernel import table
from tflq.kernels.reference import (
    add,
    dequantize,
    leaky_relu,
    mul,
    quantize,
    sub,
)

REFERENCE = table(
    add.KERNELS,
    dequantize.KERNELS,
    leaky_relu.KERNELS,
    mul.KERNELS,
    quantize.KERNELS,
    sub.KERNELS,
)
