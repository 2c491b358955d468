"""The table of what CMSIS-NN computes otherwise than TensorFlow Lite Micro's reference kernels, in either rounding."""

from __future__ import annotations

from tflq.kernels.table import catalogue

CMSIS_NN = catalogue(
    "tflq.kernels.cmsis_nn",
    {
        "CONV_2D": "conv_2d",
        "FULLY_CONNECTED": "fully_connected",
        "UNIDIRECTIONAL_SEQUENCE_LSTM": "unidirectional_sequence_lstm",
    },
)
