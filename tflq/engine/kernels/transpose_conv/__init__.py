"""TRANSPOSE_CONV: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = (
    *formulas(
        "TRANSPOSE_CONV",
        "int8; one weight scale",
        "kernel_util.cc PopulateConvolutionQuantizationParams",
        (when.opt(until="tf-2.3"), "only the first output channel has a multiplier"),
        (when.opt("tf-2.5"), "every channel has it"),
    ),
    *formulas(
        "TRANSPOSE_CONV",
        "int16",
        "transpose_conv.cc EvalQuantizedPerChannel16x8",
        (when.tflite(until="tflite-2.7"), "64-bit sums, M16"),
        (when.tflite("tflite-2.9", "tflite-2.14"), "32-bit sums, DR, unless the bias has 64 bits"),
        (when.tflite("litert-1.0"), "64-bit sums, M16, unless quantized_bias_type is int32"),
    ),
    *formulas(
        "TRANSPOSE_CONV",
        "uint8, int8, int16",
        "transpose_conv.cc Eval",
        (when.tflite(until="tflite-2.11"), "the fused activation is ignored"),
        (when.tflite("tflite-2.12"), "it limits codes"),
    ),
    *formulas(
        "TRANSPOSE_CONV",
        "uint8, int8",
        "transpose_conv.h TransposeConvV2",
        (when.opt(vectors=True), "DRU in blocks"),
        (when.opt(vectors=False), "DR"),
    ),
)
FAULTS = (
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8", "int32 int8 int16 int64? -> int16"),
        "tflite-micro with CMSIS-NN 99f736a",
        "the fused activation is ignored",
        "tflite-micro cmsis_nn/transpose_conv.cc CalculateOpData",
        (when.cmsis_nn(),),
    ),
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8",),
        "tflite-micro, October 2026",
        "the shape operand is not looked at: the output has the shape that the file declares, the rest is dropped",
        "transpose_conv.cc TransposeConvPrepare",
        (when.micro(),),
    ),
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8", "int32 uint8 uint8 int32? -> uint8"),
        "2.3 to 2.11",
        "the fused activation is ignored",
        "transpose_conv.cc Eval",
        (when.tflite(until="tflite-2.11"),),
    ),
    Fault(
        "TRANSPOSE_CONV",
        ("int32 int8 int8 int32? -> int8",),
        "2.3",
        "of several output channels that share a weight scale only the first has its multiplier: refused",
        "kernel_util.cc PopulateConvolutionQuantizationParams",
        (when.opt(until="tf-2.3"),),
    ),
)
