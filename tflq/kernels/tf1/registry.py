"""The tables of TensorFlow r1.15's two resolvers."""

from __future__ import annotations

from tflq.kernels.reference.registry import REFERENCE
from tflq.kernels.table import catalogue
from tflq.kernels.tf1 import acceptance
from tflq.kernels.tf1.acceptance import accepted

_BOTH = REFERENCE.overlaid(
    catalogue(
        "tflq.kernels.tf1",
        {
            "ADD": "sums",
            "CONV_2D": "convolutions",
            "DEPTHWISE_CONV_2D": "convolutions",
            "DEQUANTIZE": "dequantize",
            "FULLY_CONNECTED": "fully_connected",
            "LEAKY_RELU": "leaky_relu",
            "LOGISTIC": "sigmoids",
            "LSTM": "lstm",
            "MEAN": "mean",
            "MUL": "mul",
            "PRELU": "prelu",
            "QUANTIZE": "quantize",
            "RELU6": "rectifiers",
            "RELU_N1_TO_1": "rectifiers",
            "RESIZE_BILINEAR": "resize_bilinear",
            "SUB": "sums",
            "SUM": "sum",
            "TANH": "sigmoids",
        },
    )
)

TF1_REFERENCE = accepted(
    _BOTH.overlaid(catalogue("tflq.kernels.tf1", {"PAD": "pad", "PADV2": "pad"})), acceptance.REFERENCE
)
TF1_OPTIMIZED = accepted(
    _BOTH.overlaid(
        catalogue(
            "tflq.kernels.tf1",
            {
                "CONV_2D": "convolutions_optimized",
                "FULLY_CONNECTED": "fully_connected_optimized",
                "MEAN": "mean_optimized",
                "PAD": "pad_optimized",
                "PADV2": "pad_optimized",
                "RESIZE_BILINEAR": "resize_bilinear_optimized",
            },
        )
    ),
    acceptance.OPTIMIZED,
)
