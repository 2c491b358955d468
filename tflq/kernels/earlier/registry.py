"""The table of what releases up to 2.14 computed in their own way."""

from __future__ import annotations

from tflq.kernels.kernel import Catalogue

EARLIER = Catalogue(
    "tflq.kernels.earlier",
    {
        "ARG_MAX": "extremum",
        "ARG_MIN": "extremum",
        "BATCH_MATMUL": "batch_matmul hybrid",
        "BIDIRECTIONAL_SEQUENCE_LSTM": "recurrent",
        "BIDIRECTIONAL_SEQUENCE_RNN": "recurrent",
        "CONV_2D": "four_bits hybrid",
        "DEPTHWISE_CONV_2D": "hybrid",
        "FULLY_CONNECTED": "four_bits fully_connected hybrid",
        "GELU": "gelu",
        "LSTM": "lstm recurrent",
        "REVERSE_V2": "reverse_v2",
        "RNN": "recurrent",
        "SPARSE_TO_DENSE": "sparse_to_dense",
        "SVDF": "recurrent",
        "TRANSPOSE_CONV": "transpose_conv",
        "UNIDIRECTIONAL_SEQUENCE_LSTM": "recurrent",
        "UNIDIRECTIONAL_SEQUENCE_RNN": "recurrent",
    },
)
