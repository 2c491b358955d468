"""The tables of TensorFlow r1.15's two resolvers."""

from __future__ import annotations

from tflq.kernels.kernel import Catalogue, Overlay
from tflq.kernels.reference.registry import REFERENCE
from tflq.kernels.tf1 import acceptance
from tflq.kernels.tf1.acceptance import Accepted

_BOTH = Overlay(
    REFERENCE,
    Catalogue(
        "tflq.kernels",
        {
            "ADD": "tf1.sums",
            "CONV_2D": "tf1.convolutions",
            "DEPTHWISE_CONV_2D": "tf1.convolutions",
            "DEQUANTIZE": "optimized.dequantize",
            "LEAKY_RELU": "tf1.leaky_relu",
            "LOGISTIC": "tf1.sigmoids",
            "LSTM": "tf1.lstm",
            "MEAN": "tf1.mean",
            "MUL": "tf1.mul",
            "PRELU": "tf1.prelu",
            "QUANTIZE": "optimized.quantize",
            "RELU6": "tf1.rectifiers",
            "RELU_N1_TO_1": "tf1.rectifiers",
            "RESIZE_BILINEAR": "tf1.resize_bilinear",
            "SUB": "tf1.sums",
            "SUM": "tf1.sum",
            "TANH": "tf1.sigmoids",
        },
    ),
)

TF1_REFERENCE = Accepted(
    Overlay(_BOTH, Catalogue("tflq.kernels.tf1", {"PAD": "pad", "PADV2": "pad"})), acceptance.REFERENCE
)
TF1_OPTIMIZED = Accepted(
    Overlay(
        _BOTH,
        Catalogue(
            "tflq.kernels.tf1",
            {
                "FULLY_CONNECTED": "fully_connected_optimized",
                "MEAN": "mean_optimized",
                "PAD": "pad_optimized",
                "PADV2": "pad_optimized",
                "RESIZE_BILINEAR": "resize_bilinear_optimized",
            },
        ),
    ),
    acceptance.OPTIMIZED,
)
