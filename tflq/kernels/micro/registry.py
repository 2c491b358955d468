"""The table of TensorFlow Lite Micro's own kernels: operators, and the files of this folder that hold their rows."""

from __future__ import annotations

from tflq.kernels.table import catalogue

MICRO = catalogue(
    "tflq.kernels.micro",
    {
        "ADD": "add",
        "CONV_2D": "conv_2d",
        "FULLY_CONNECTED": "fully_connected",
        "LOGISTIC": "sigmoids",
        "MUL": "mul",
        "QUANTIZE": "quantize",
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
