"""PRELU: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault

FAULTS = (
    Fault(
        "PRELU",
        ("uint8 uint8 -> uint8",),
        "TensorFlow 1.15",
        "codes from the zero point on are copied, regardless of the output's quantization",
        "activations.cc PreluEval",
        (when.tf1(),),
    ),
)
