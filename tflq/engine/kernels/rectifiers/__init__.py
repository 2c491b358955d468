"""RELU, RELU6, RELU_0_TO_1 and RELU_N1_TO_1: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault

FAULTS = (
    Fault(
        "RELU6",
        ("int8 -> int8", "int16 -> int16"),
        "tflite-micro, October 2026",
        "codes are clamped in the input's quantization and never rescaled to the output's",
        "activations_common.cc Relu6Prepare; activations.h Relu6Quantized",
        (when.micro(),),
    ),
)
