"""`litert-2.0-xnnpack`: LiteRT 2.0.3, BUILTIN, x86-64 with AVX2, one thread.

MEAN and SUM round half away; BATCH_MATMUL int8 ignores the zero point of its second operand.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.xnnpack.registry import HYBRID, xnnpack_over
from tflq.profiles.litert_2_0_opt import LITERT_2_0_OPTIMIZED

LITERT_2_0_XNNPACK = LITERT_2_0_OPTIMIZED.derive(
    name="litert-2.0-xnnpack",
    source=replace(LITERT_2_0_OPTIMIZED.source, resolver="BUILTIN", vectors="AVX2"),
    kernels=xnnpack_over(
        LITERT_2_0_OPTIMIZED.kernels,
        ("elementwise", "extremes", "logistic"),
        HYBRID,
        {"BATCH_MATMUL": "batch_matmul_2_0 batch_matmul_hybrid", "MEAN": "mean_2_0", "SUM": "sum_2_0"},
    ),
).within(in_optimized("2.0"))
