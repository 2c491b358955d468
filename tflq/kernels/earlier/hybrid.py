"""Hybrid operators up to 2.14: today's kernels, whose bits are not claimed for those releases.

They quantized floats, and added up products, by other code: in float64, without the vector helpers.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.exactness import close
from tflq.kernels.reference import batch_matmul_hybrid, conv_2d_hybrid, depthwise_conv_2d_hybrid, fully_connected_hybrid

UNCLAIMED = close("2.14 quantizes activations without the vector helpers of later releases")

KERNELS = tuple(
    replace(row, exactness=UNCLAIMED)
    for file in (batch_matmul_hybrid, conv_2d_hybrid, depthwise_conv_2d_hybrid, fully_connected_hybrid)
    for row in file.KERNELS
)
