"""MUL: kernels by layer. Here: which formulas hold where, and known faults."""

from __future__ import annotations

from tflq.engine.kernels import validity as when
from tflq.engine.kernels.notes import Fault, formulas

FORMULAS = formulas(
    "MUL",
    "uint8, int8",
    "mul.h",
    (when.opt(vectors=True), "saturated in 16 bits, then zo added with wrap"),
    (when.opt(vectors=False), "held in 32 bits"),
) + formulas(
    "MUL",
    "uint8, int8, a tensor by itself",
    "XNNPACK optimize_common_subgraphs_mul_to_sqr",
    (when.xnnpack(until="litert-2.0"), "(x - zi)^2 F32(k), k = scale(x)^2 / scale(y)"),
    (when.xnnpack("litert-2.1"), "a table: v = (x - zi) scale(x); v v / scale(y) + zo, all in float32, half to even"),
)
FAULTS = (
    Fault(
        "MUL",
        ("int16 int16 -> uint8",),
        "tflite-micro, October 2026",
        "constants are never computed: every code is 0, and twice as many bytes are written as the output has",
        "mul_common.cc CalculateOpDataMul, EvalMulQuantizedReference",
        (when.micro(),),
    ),
    Fault(
        "MUL",
        ("int8 int8 -> int8", "uint8 uint8 -> uint8"),
        "vector code",
        "a scaled product beyond 16 bits less the zero point wraps, from the highest code to the lowest",
        "optimized/integer_ops/mul.h MulElementwise; optimized_ops.h MulElementwise, MulSimpleBroadcast",
        (when.tflite(vectors=True, resolvers=when.OPT),),
    ),
)
