"""`litert-opt`: LiteRT 2.3 (and TensorFlow 2.21), BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX2, one thread."""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.optimized.registry import OPTIMIZED
from tflq.numerics.stages import HalfUpTwice
from tflq.profiles.litert_ref import LITERT_REF

LITERT_OPT = LITERT_REF.derive(
    name="litert-opt",
    source=replace(LITERT_REF.source, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES", cpu="x86-64 with AVX2"),
    arithmetic=replace(LITERT_REF.arithmetic, requantize_gemm=HalfUpTwice.of, requantize_simd=HalfUpTwice.of),
    kernels=OPTIMIZED,
).measured()
