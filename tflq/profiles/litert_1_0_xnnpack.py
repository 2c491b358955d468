"""`litert-1.0-xnnpack`: LiteRT 1.0.1, BUILTIN, x86-64 with AVX2, one thread. MEAN over images is average pooling."""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.xnnpack.registry import HYBRID, xnnpack_over
from tflq.profiles.litert_1_0_opt import LITERT_1_0_OPTIMIZED

LITERT_1_0_XNNPACK = LITERT_1_0_OPTIMIZED.derive(
    name="litert-1.0-xnnpack",
    source=replace(LITERT_1_0_OPTIMIZED.source, resolver="BUILTIN", vectors="AVX2"),
    kernels=xnnpack_over(
        LITERT_1_0_OPTIMIZED.kernels,
        ("batch_matmul", "elementwise", "extremes", "logistic", "sum"),
        HYBRID,
        {"MEAN": "mean_1_0"},
    ),
).within(in_optimized("1.0"))
