"""The table of what releases up to 2.14 computed in their own way."""

from __future__ import annotations

from tflq.kernels.kernel import Catalogue

EARLIER = Catalogue(
    "tflq.kernels.earlier",
    {
        "BATCH_MATMUL": "hybrid",
        "CONV_2D": "four_bits hybrid",
        "DEPTHWISE_CONV_2D": "hybrid",
        "FULLY_CONNECTED": "four_bits hybrid",
        "LSTM": "lstm",
        "TRANSPOSE_CONV": "transpose_conv",
    },
)
