"""LEAKY_RELU: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = formulas(
    "LEAKY_RELU",
    "uint8, int8; in the reference resolver int16 too",
    "reference/leaky_relu.h QuantizeLeakyRelu",
    (when.tflite(until="litert-2.0"), "DR(x; -M) for a negative alpha"),
    (when.tflite("litert-2.1"), "-DR(x; M)"),
)
FAULTS = (
    Fault(
        "LEAKY_RELU",
        ("uint8 -> uint8",),
        "TensorFlow 1.15",
        "codes from the zero point on are copied, regardless of the output's quantization",
        "reference_ops.h QuantizeLeakyRelu",
        (when.tf1(),),
    ),
)
