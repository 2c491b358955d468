"""DEQUANTIZE and its kin: kernels by layer. Here: known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault

FAULTS = (
    Fault(
        "DEQUANTIZE",
        ("int8 -> float32",),
        "tflite-micro, 2025 to October 2026",
        "the first scale and zero point are used for every channel",
        "tflite-micro dequantize_common.cc Prepare; micro_allocator.cc InitializeTfLiteTensorFromFlatbuffer",
        (when.micro(),),
    ),
)
