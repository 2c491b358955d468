"""`tflite-2.14-opt-arm64`: tflite-runtime 2.14.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, AArch64, one thread.

Vector code is that of LiteRT 2.3, and matrices are multiplied by gemmlowp, or by ruy where storage orders ask for it.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.arm64.registry import OPTIMIZED_2_14_ARM64
from tflq.kernels.kernel import Overlay
from tflq.kernels.optimized.registry import OPTIMIZED, OPTIMIZED_2_14
from tflq.numerics.stages import HalfUpTwice, SingleRounding
from tflq.profiles.tflite_2_14_ref_arm64 import TFLITE_2_14_REF_ARM64

TFLITE_2_14_OPT_ARM64 = TFLITE_2_14_REF_ARM64.derive(
    name="tflite-2.14-opt-arm64",
    source=replace(
        TFLITE_2_14_REF_ARM64.source, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES", cpu="AArch64 without SVE"
    ),
    arithmetic=replace(
        TFLITE_2_14_REF_ARM64.arithmetic, requantize_gemm=SingleRounding.of, requantize_simd=HalfUpTwice.of
    ),
    kernels=Overlay(Overlay(OPTIMIZED_2_14, OPTIMIZED), OPTIMIZED_2_14_ARM64),
)
