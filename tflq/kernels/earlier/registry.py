"""The table of what releases up to 2.14 computed in their own way."""

from __future__ import annotations

from tflq.kernels.kernel import Catalogue

EARLIER = Catalogue(
    "tflq.kernels.earlier",
    {
        "BATCH_MATMUL": "hybrid",
        "BIDIRECTIONAL_SEQUENCE_LSTM": "recurrent",
        "BIDIRECTIONAL_SEQUENCE_RNN": "recurrent",
        "CONV_2D": "four_bits hybrid",
        "DEPTHWISE_CONV_2D": "hybrid",
        "FULLY_CONNECTED": "four_bits hybrid",
        "LSTM": "lstm recurrent",
        "RNN": "recurrent",
        "SVDF": "recurrent",
        "TRANSPOSE_CONV": "transpose_conv",
        "UNIDIRECTIONAL_SEQUENCE_LSTM": "recurrent",
        "UNIDIRECTIONAL_SEQUENCE_RNN": "recurrent",
    },
)
