"""MEAN and SUM: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

_FLOAT_MEAN = "S / N towards zero where quantizations are equal, else away(f32(f32(S/N)*k + f32(-zi*k))) + zo"
_FLOAT_SUM = "raw codes where quantizations are equal, else float32, half away; wraps 8 bits"
_WITHIN = "DR(S - N*zi; k) with N in the multiplier, + zo"
_IMAGES = "axes 1 and 2 of images"
FORMULAS = (
    *formulas(
        "MEAN",
        "uint8, int8; other axes",
        "reference/reduce.h QuantizedMeanOrSum",
        (
            when.opt(until="tf-2.3"),
            "S / N towards zero where quantizations are equal, else away(f32(f32(S/N)*k + f32(f32(-zi*k) + 0.5))) + zo",
        ),
        (when.tflite("tf-2.5", "tflite-2.12"), _FLOAT_MEAN),
        (when.tflite("tflite-2.13"), _WITHIN),
    ),
    *formulas(
        "MEAN",
        f"uint8; {_IMAGES}",
        "optimized_ops.h Mean",
        (when.tflite(until="tf-2.5"), "DR(S; k/N) + zo - zi*k, that product cut off towards zero"),
        (when.ref("tflite-2.7", "tflite-2.12"), "DR(S; k/N) + zo - away(zi*k)"),
        (when.opt("tflite-2.7"), "DR(S; k/N) + zo - away(zi*k)"),
        (when.ref("tflite-2.13"), _WITHIN),
    ),
    *formulas(
        "MEAN",
        f"int8; {_IMAGES}",
        "optimized/integer_ops/mean.h Mean",
        (when.opt(until="tf-2.5"), "DR(S; k/N) + zo - zi*k, that product cut off towards zero"),
        (when.opt("tflite-2.7", "tflite-2.9"), "DR(S - N*zi; k) / N, half away, + zo"),
        (when.opt("tflite-2.11"), "DR(S; k/N) + zo - away(zi*k)"),
    ),
    *formulas(
        "MEAN",
        f"int8; {_IMAGES}, rescaling",
        "integer_ops/mean.h Mean",
        (when.opt(vectors=True), "DRU in blocks of 16"),
        (when.opt(vectors=False), "DR"),
    ),
    *formulas(
        "MEAN",
        f"uint8, int8; {_IMAGES}, negative or repeated",
        "reduce.cc EvalMean, BuildMeanParamsFor4D",
        (when.opt("tflite-2.7", "litert-2.1"), "as other axes"),
        (when.opt("litert-2.2"), "as 1 and 2"),
    ),
    *formulas(
        "MEAN",
        f"int8, int16; {_IMAGES}",
        "reference/integer_ops/mean.h Mean; reference/reduce.h QuantizedMeanOrSum",
        (when.ref("tflite-2.7", "tflite-2.9"), "DR(S - N*zi; k) / N, half away, + zo"),
        (when.ref("tflite-2.11", "tflite-2.12"), _FLOAT_MEAN),
        (when.ref("tflite-2.13"), _WITHIN),
    ),
    *formulas(
        "SUM",
        "uint8, int8",
        "reduce.cc EvalSum; reference/reduce.h and optimized/reduce.h QuantizedMeanOrSum",
        (
            when.opt(until="tf-2.3"),
            "raw codes where quantizations are equal, else float32 with 0.5 added, half away; wraps 8 bits",
        ),
        (when.tflite("tf-2.5", "tflite-2.12"), _FLOAT_SUM),
        (
            when.tflite("tflite-2.13", "tflite-2.13"),
            "raw codes where quantizations are equal, else DR(S - N*zi; k) + zo, clamped",
        ),
        (when.ref("tflite-2.14"), "DR, int8 read as uint8"),
        (when.opt("tflite-2.14"), "float32, half away, clamped"),
    ),
    *formulas(
        "MEAN",
        "uint8, int8",
        "xnnpack_delegate.cc VisitMeanNode, VisitReduceNode",
        (when.xnnpack(until="litert-1.0"), "images only: rne(f32(f32(S - N*zi) * f32(k/N))) + zo"),
        (when.xnnpack("litert-1.4", "litert-2.0"), "one float32 multiplier of S, one addition, away"),
        (when.xnnpack("litert-2.1"), "one float32 multiplier of S, one addition, rne"),
    ),
    *formulas(
        "SUM",
        "uint8, int8",
        "xnnpack_delegate.cc VisitReduceNode",
        (when.xnnpack("litert-1.0", "litert-1.0"), "not XNNPACK's: as with the optimized kernels"),
        (when.xnnpack("litert-1.4", "litert-2.0"), "one float32 multiplier of S, one addition, away"),
        (when.xnnpack("litert-2.1"), "one float32 multiplier of S, one addition, rne"),
    ),
)
FAULTS = (
    Fault(
        "SUM",
        ("int8 int32 -> int8",),
        "2.14 to 2.3, reference kernels",
        "int8 codes are read as uint8 (code & 255), the result is clamped to 0..255 and its low byte stored",
        "LiteRT issue 4079; reduce.cc EvalSum, QuantizedMeanOrSum<uint8_t>",
        (when.ref("tflite-2.14"),),
    ),
    Fault(
        "SUM",
        ("int16 int32 -> int16",),
        "2.14 to 2.3, reference kernels",
        "int16 is read and written as uint8, half of the output stays unwritten: refused",
        "reduce.cc EvalSum",
        (when.ref("tflite-2.14"),),
    ),
    Fault(
        "SUM",
        ("int8 int32 -> int8", "uint8 int32 -> uint8"),
        "2.3 to 2.12",
        "sums are not clamped: they wrap in 8 bits",
        "reduce.cc EvalSum; reference/reduce.h QuantizedMeanOrSum",
        (when.tflite(until="tflite-2.12"),),
    ),
)
