"""The table of TensorFlow Lite Micro's own kernels: operators, and the files of this folder that hold their rows."""

from __future__ import annotations

from tflq.kernels.table import catalogue

MICRO = catalogue(
    "tflq.kernels.micro",
    {
        "ADD": "add",
        "BATCH_MATMUL": "batch_matmul",
        "CONV_2D": "conv_2d",
        "FULLY_CONNECTED": "fully_connected",
        "LEAKY_RELU": "leaky_relu",
        "LOGISTIC": "sigmoids",
        "MUL": "mul",
        "PRELU": "prelu",
        "QUANTIZE": "quantize",
        "RELU": "relu",
        "RELU6": "relu6",
        "RSQRT": "rsqrt",
        "SQUARED_DIFFERENCE": "squared_difference",
        "SUB": "sub",
        "SUM": "sum",
        "SVDF": "svdf",
        "TANH": "sigmoids",
        "TRANSPOSE_CONV": "transpose_conv",
        "UNIDIRECTIONAL_SEQUENCE_LSTM": "unidirectional_sequence_lstm",
    },
)
