"""CONV_2D: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = (
    *formulas(
        "CONV_2D",
        "int8",
        "ruy/apply_multiplier.cc; cpu_backend_gemm.h Gemm",
        (when.opt(until="tf-2.3"), "DR; one column DRU"),
        (when.opt("tf-2.5", "tflite-2.12", vectors=True), "SR; one column DRU"),
        (when.opt("tf-2.5", "tflite-2.12", vectors=False), "SR"),
        (when.opt("tflite-2.13"), "DRU"),
    ),
    *formulas(
        "CONV_2D",
        "uint8",
        "cpu_backend_gemm.h Gemm",
        (when.opt("tflite-2.13", "tflite-2.14"), "gemmlowp: DR"),
        (when.opt("litert-1.0"), "ruy: DRU"),
    ),
)
FAULTS = (
    Fault(
        "CONV_2D",
        ("int16 int8 int32 -> int16",),
        "2.14 to 2.3",
        "an int32 bias without the option quantized_bias_type is read as int64: refused",
        "conv.cc EvalQuantizedPerChannel16x8; tflite-micro conv.cc looks at the bias's type",
        (when.tflite("tflite-2.14"),),
    ),
    Fault(
        "CONV_2D",
        ("int8 int8 int32 -> int8",),
        "TensorFlow 1.15",
        "the fused activation is ignored: codes are clamped to -128..127 only",
        "conv.cc EvalQuantizedPerChannel",
        (when.tf1("opt"),),
    ),
    Fault(
        "CONV_2D",
        ("int16 int8 int32 -> int16",),
        "tflite-micro with CMSIS-NN 99f736a",
        "with a bias of 32 bits no scratch buffer is asked for, and nothing is written: refused",
        "tflite-micro cmsis_nn/conv.cc Prepare; CMSIS-NN arm_convolve_s16",
        (when.cmsis_nn(),),
    ),
    Fault(
        "CONV_2D",
        ("int8 int8 int32 -> int8", "float32 float32 float32 -> float32"),
        "XNNPACK up to LiteRT 2.1; uint8 from LiteRT 1.0 on",
        "with SAME padding that is negative along an axis (a stride beyond the filter), no tap is read: every output "
        "is the bias alone, which is all zeros without one",
        "XNNPACK convolution-nhwc.c, SAME padding; right from LiteRT 2.2 on",
        (when.xnnpack(until="litert-2.1"),),
    ),
)
