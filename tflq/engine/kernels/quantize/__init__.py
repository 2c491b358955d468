"""QUANTIZE: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import formulas

FORMULAS = formulas(
    "QUANTIZE",
    "8 bits to 8 bits",
    "optimized_ops.h Requantize",
    (when.opt(vectors=True), "DRU in blocks"),
    (when.opt(vectors=False), "DR"),
)
