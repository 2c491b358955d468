"""SVDF: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault

FAULTS = (
    Fault(
        "SVDF",
        ("int8 int8 int8 int32? int8 -> int8",),
        "2.14 to 2.3",
        "a state of 8 bits is accepted, then read and written as 16 bits, beyond its end: refused",
        "svdf.cc Prepare, EvalIntegerSVDF; tflite-micro svdf_common.cc has both widths",
        (when.tflite("tflite-2.14"),),
    ),
    Fault(
        "SVDF",
        ("int8 int8 int8 int32? int8 -> int8",),
        "tflite-micro, 2025 to October 2026",
        "the zero point of an 8-bit state is added after saturation, so that large values of the state wrap",
        "tflite-micro svdf_common.cc EvalInt8SvdfReference",
        (when.When((when.MICRO, when.ESP_NN)),),
    ),
    Fault(
        "SVDF",
        ("int8 int8 int8 int32? int8 -> int8",),
        "CMSIS-NN in tflite-micro, up to October 2026",
        "the zero point of an 8-bit state is ignored, and values beyond 8 bits wrap instead of saturating",
        "tflite-micro cmsis_nn/svdf.cc EvalIntegerSVDF gives arm_svdf_s8 bounds of 16 bits for the state",
        (when.cmsis_nn(),),
    ),
)
