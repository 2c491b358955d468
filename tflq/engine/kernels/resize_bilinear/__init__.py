"""RESIZE_BILINEAR: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = (
    *formulas(
        "RESIZE_BILINEAR",
        "uint8",
        "optimized_ops.h ResizeBilinearGenericSmallChannel",
        (when.opt(until="tf-2.3"), "float32, towards zero"),
        (when.opt("tf-2.5"), "float32, 0.5 added, towards zero"),
    ),
    *formulas(
        "RESIZE_BILINEAR",
        "int8",
        "reference_ops.h ResizeBilinearInteger",
        (
            when.opt(until="tf-2.3"),
            "(x + 2**19) / 2**20 towards zero, wraps; with half-pixel centres the border is extrapolated",
        ),
        (when.opt("tf-2.5"), "x / 2**20, half away; the border is repeated"),
    ),
)
FAULTS = (
    Fault(
        "RESIZE_BILINEAR",
        ("int8 int32 -> int8",),
        "2.3",
        "with half-pixel centres borders are extrapolated, and wrap in 8 bits",
        "reference_ops.h ResizeBilinearInteger",
        (when.opt(until="tf-2.3"),),
    ),
)
