"""ADD and SUB: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

_POWERS = "powers of two only: the finer input is shifted, half away"
FORMULAS = (
    *formulas(
        "ADD",
        "int16",
        "add.cc Prepare; add.h",
        (when.opt(until="tf-2.3"), _POWERS),
        (when.opt("tf-2.5", vectors=True), "inputs with one rounding less"),
        (when.opt("tf-2.5", vectors=False), "DR of inputs and sum"),
    ),
    *formulas(
        "ADD",
        "uint8, int8",
        "add.h",
        (when.opt(vectors=True), "inputs with one rounding less"),
        (when.opt(vectors=False), "DR of inputs and sum"),
    ),
    *formulas(
        "SUB",
        "int16",
        "sub.cc Prepare",
        (when.opt(until="tf-2.3"), _POWERS),
        (when.opt("tf-2.5"), "DR of inputs and difference"),
    ),
)
FAULTS = (
    Fault(
        "ADD",
        ("float32 float32 -> float32",),
        "2.14, AArch64",
        "NaN becomes the activation's lower limit in some elements: broadcast ones, or the last of a run",
        "ActivationFunctionWithMinMax, compiled to fmaxnm and fminnm",
        (when.tflite(until="tflite-2.14", cpu="arm64"),),
    ),
    Fault(
        "SUB",
        ("float32 float32 -> float32",),
        "2.14, AArch64",
        "NaN becomes the activation's lower limit where an operand is broadcast",
        "ActivationFunctionWithMinMax, compiled to fmaxnm and fminnm",
        (when.tflite(until="tflite-2.14", cpu="arm64"),),
    ),
    Fault(
        "ADD",
        ("int8 int8 -> int8",),
        "TensorFlow 2.3 to LiteRT 2.4, packages with vector code; uint8 too",
        "sums that need more than 16 bits in steps of the output wrap; XNNPACK leaves such scales to these kernels",
        "optimized/integer_ops/add.h AddElementwiseInt8, vmovn_s32",
        (when.opt(vectors=True),),
    ),
)
