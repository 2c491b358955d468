"""BATCH_MATMUL: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

_IGNORED = "F32, the second operand's zero point ignored"
FORMULAS = (
    *formulas(
        "BATCH_MATMUL",
        "int8 to int32",
        "batch_matmul.cc EvalInt8Int32",
        (when.opt(until="tflite-2.9"), "products of raw codes"),
        (when.opt("tflite-2.11", "litert-1.0"), "products of centred codes"),
        (when.opt("litert-1.4"), "products of raw codes"),
    ),
    *formulas(
        "BATCH_MATMUL",
        "int8",
        "ruy/apply_multiplier.cc; batch_matmul.cc EvalInt8Int8",
        (when.opt(until="tflite-2.12"), "ruy: SR"),
        (when.opt("tflite-2.13", "litert-1.4"), "ruy: DRU"),
        (when.opt("litert-2.0"), "DR"),
    ),
    *formulas(
        "BATCH_MATMUL",
        "int8",
        "xnnpack_delegate.cc VisitBatchMatMulNode",
        (when.xnnpack("litert-1.0", "litert-1.4"), "not taken: DRU"),
        (when.xnnpack("litert-2.0", "litert-2.0"), _IGNORED),
        (when.xnnpack("litert-2.1"), "F32 where that zero point is 0, else not taken"),
    ),
)
FAULTS = (
    Fault(
        "BATCH_MATMUL",
        ("int8 int8 -> int8", "int8 int8 -> int32"),
        "up to LiteRT 2.0",
        "an adjoint x whose matrices share one y is folded into rows as if it were not adjoint: refused",
        "reference/batch_matmul.h BatchMatMul",
        (when.tflite(until="litert-1.4"), when.tflite(until="litert-2.0", resolvers=f"{when.REF} {when.OPT}")),
    ),
    Fault(
        "BATCH_MATMUL",
        ("int8 int8 -> int8",),
        "LiteRT 2.0, XNNPACK",
        "the zero point of the second operand is ignored",
        "xnnpack_delegate.cc VisitBatchMatMulNode",
        (when.xnnpack("litert-2.0", "litert-2.0"),),
    ),
    Fault(
        "BATCH_MATMUL",
        ("float32 int8 -> float32",),
        "up to LiteRT 1.0",
        "a scale for each column reads as 0: every output is 0, without an error",
        "core/subgraph.cc GetLegacyQuantization; batch_matmul.cc EvalHybrid",
        (when.tflite(until="litert-1.0"),),
    ),
)
