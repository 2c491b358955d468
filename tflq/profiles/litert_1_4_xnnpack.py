"""`litert-1.4-xnnpack`: LiteRT 1.4.0, BUILTIN, x86-64 with AVX2, one thread; 1.2.0 gives the same bits.

MEAN and SUM round half away; BATCH_MATMUL int8 is left to the kernels below.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.xnnpack.registry import HYBRID, xnnpack_over
from tflq.profiles.litert_1_4_opt import LITERT_1_4_OPTIMIZED

LITERT_1_4_XNNPACK = LITERT_1_4_OPTIMIZED.derive(
    name="litert-1.4-xnnpack",
    source=replace(LITERT_1_4_OPTIMIZED.source, resolver="BUILTIN", vectors="AVX2"),
    kernels=xnnpack_over(
        LITERT_1_4_OPTIMIZED.kernels,
        ("batch_matmul", "elementwise", "extremes", "logistic"),
        HYBRID,
        {"MEAN": "mean_2_0", "SUM": "sum_2_0"},
    ),
).within(in_optimized("1.4"))
