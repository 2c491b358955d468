"""The tables of what earlier releases computed in their own way; each lies over that of the release after it."""

from __future__ import annotations

from tflq.kernels.table import catalogue

_PACKAGE = "tflq.kernels.earlier"

#: Releases up to 2.14.
EARLIER = catalogue(
    _PACKAGE,
    {
        "ARG_MAX": "extremum",
        "ARG_MIN": "extremum",
        "BATCH_MATMUL": "batch_matmul hybrid",
        "BIDIRECTIONAL_SEQUENCE_LSTM": "recurrent",
        "BIDIRECTIONAL_SEQUENCE_RNN": "recurrent",
        "CONV_2D": "four_bits hybrid",
        "DEPTHWISE_CONV_2D": "hybrid",
        "EQUAL": "equal",
        "FULLY_CONNECTED": "four_bits fully_connected hybrid",
        "GELU": "gelu",
        "LEAKY_RELU": "leaky_relu",
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

#: LiteRT up to 2.0, both resolvers.
UP_TO_LITERT_2_0 = catalogue(_PACKAGE, {"BATCH_MATMUL": "batch_matmul", "EQUAL": "equal", "LEAKY_RELU": "leaky_relu"})

#: LiteRT up to 1.0, both resolvers.
UP_TO_LITERT_1_0 = catalogue(_PACKAGE, {"CONV_2D": "four_bits", "FULLY_CONNECTED": "four_bits", "SUM": "sum_1_0"})

#: Releases up to 2.13, both resolvers.
UP_TO_2_13 = catalogue(_PACKAGE, {"PAD": "pad_2_13", "PADV2": "pad_2_13", "SUM": "sum_2_13"})

#: Releases up to 2.12, both resolvers.
UP_TO_2_12 = catalogue(_PACKAGE, {"MEAN": "mean_2_12", "SUM": "sum_2_12"})

#: Releases up to 2.11, both resolvers.
UP_TO_2_11 = catalogue(
    _PACKAGE,
    {"LSTM": "lstm_2_11", "TRANSPOSE_CONV": "transpose_conv_2_11", "UNIDIRECTIONAL_SEQUENCE_LSTM": "lstm_2_11"},
)

#: Releases up to 2.9, the reference resolver, and the optimized one where it has no vector code.
UP_TO_2_9 = catalogue(_PACKAGE, {"FULLY_CONNECTED": "fully_connected_2_9", "MEAN": "mean_2_9"})

#: Releases up to 2.8, both resolvers.
UP_TO_2_8 = catalogue(_PACKAGE, {"TRANSPOSE_CONV": "transpose_conv_2_8"})

#: 2.7, both resolvers.
UP_TO_2_7 = catalogue(
    _PACKAGE, {"FULLY_CONNECTED": "fully_connected_2_7", "RANDOM_STANDARD_NORMAL": "random_standard_normal_2_7"}
)

#: Releases up to 2.5, both resolvers.
UP_TO_2_5 = catalogue(_PACKAGE, {"BATCH_MATMUL": "batch_matmul_2_5", "CONV_2D": "conv_2d_hybrid_2_5"})

#: 2.5, the reference resolver.
REFERENCE_2_5 = catalogue(_PACKAGE, {"LOG_SOFTMAX": "log_softmax_2_5", "MEAN": "mean_2_5"})

#: The same: SOFTMAX has one kernel for both resolvers.
SHARED_2_5 = catalogue("tflq.kernels.optimized", {"SOFTMAX": "softmax softmax_float"})

#: 2.12 and releases up to 2.5 on x86-64, whose packages have the NEON code by way of SSE: the reference resolver.
VECTORS_2_12 = catalogue("tflq.kernels.tf1", {"LSTM": "lstm"})
