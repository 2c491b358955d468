"""FULLY_CONNECTED: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = (
    *formulas(
        "FULLY_CONNECTED",
        "int8",
        "ruy/apply_multiplier.cc; cpu_backend_gemm.h Gemm",
        (when.opt(until="tf-2.3"), "DR; one row DRU"),
        (when.opt("tf-2.5", "tflite-2.12", vectors=True), "SR; one row DRU"),
        (when.opt("tf-2.5", "tflite-2.12", vectors=False), "SR"),
        (when.opt("tflite-2.13"), "DRU"),
    ),
    *formulas(
        "FULLY_CONNECTED",
        "uint8",
        "cpu_backend_gemm.h Gemm",
        (when.opt(until="tflite-2.14", vectors=True), "gemmlowp: DR; one row DRU"),
        (when.opt(until="tflite-2.14", vectors=False), "gemmlowp: DR"),
        (when.opt("litert-1.0"), "ruy: DRU"),
    ),
    *formulas(
        "FULLY_CONNECTED",
        "uint8, int8, int16",
        "fully_connected.cc; April 2025",
        (when.ref(until="litert-1.0"), "DR, M16"),
        (when.ref("litert-1.4"), "DBL"),
    ),
    *formulas(
        "FULLY_CONNECTED",
        "int16; more than two dimensions",
        "reference/integer_ops/fully_connected.h FullyConnected",
        (when.tflite(until="tflite-2.7"), "outputs are not written"),
        (when.tflite("tflite-2.9"), "written"),
    ),
    *formulas(
        "FULLY_CONNECTED",
        "int8, int16; several weight scales",
        "core/subgraph.cc GetLegacyQuantization; fully_connected.cc Prepare",
        (when.tflite(until="tflite-2.9"), "zo for every input: several scales read as 0"),
        (when.tflite("tflite-2.11"), "a multiplier for each channel"),
    ),
)
FAULTS = (
    Fault(
        "FULLY_CONNECTED",
        ("float32 int4 float32? -> float32",),
        "1.4 to 2.4, optimized, x86-64",
        "with constant weights whose scales belong to blocks, the activation function is not applied",
        "fully_connected.cc EvalBlockwise4Bit",
        (when.opt("litert-1.4", cpu="x86-64"),),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int16 int8 int32 -> int16",),
        "2.14 to 2.3",
        "an int32 bias without the option quantized_bias_type is read as int64: refused",
        "fully_connected.cc EvalQuantized; tflite-micro fully_connected.cc looks at the bias's type",
        (when.tflite("tflite-2.14"),),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int8 int8 int32? -> int8",),
        "tflite-micro with CMSIS-NN 99f736a",
        "weights' zero point is ignored where the output has three dimensions or more and the depth is a multiple of 4",
        "tflite-micro cmsis_nn/fully_connected.cc EvalQuantizedInt8, arm_convolve_1x1_s8_fast",
        (when.cmsis_nn(),),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int16 int8 int32? -> int16",),
        "tflite-micro with CMSIS-NN 99f736a",
        "a bias of 32 bits is read as 64 bits, beyond its end: refused",
        "tflite-micro cmsis_nn/fully_connected.cc EvalQuantizedInt16",
        (when.cmsis_nn(),),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int8 int8 int32? -> int8",),
        "2.3 to 2.9",
        "a scale for each channel reads as 0: the output is its zero point for every input, without an error",
        "core/subgraph.cc GetLegacyQuantization; fully_connected.cc PrepareImpl",
        (when.tflite(until="tflite-2.9"),),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("float32 int8 float32? -> float32",),
        "up to 2.14",
        "a scale for each channel reads as 0: the output is the bias for every input, 0 without one, without an error",
        "core/subgraph.cc GetLegacyQuantization; fully_connected.cc EvalHybridDense",
        (when.tflite(until="tflite-2.14"),),
    ),
    Fault(
        "FULLY_CONNECTED",
        ("int16 int8 -> int16",),
        "tflite-micro of 2025 to June 2026; TensorFlow Lite 2.9 to 2.14; LiteRT's optimized kernels",
        "without a bias, sums have 32 bits and wrap (integer overflow); LiteRT's reference kernels have 64",
        "fully_connected.cc EvalQuantized; tflite-micro fully_connected.cc FullyConnectedEval",
        (when.micro(until="litert-2.1"), when.tflite("tflite-2.9", "tflite-2.14"), when.opt("litert-1.0")),
    ),
)
