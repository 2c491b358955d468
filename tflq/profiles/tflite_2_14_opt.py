"""`tflite-2.14-opt`: tflite-runtime 2.14.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX or later, one thread."""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.acceptance import registered_for_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_2_14, OPTIMIZED_2_14_X86
from tflq.numerics.stages import HalfUpTwice
from tflq.profiles.tflite_2_14_ref import TFLITE_2_14

#: What the optimized resolver computes, whatever it registers of it.
TFLITE_2_14_OPTIMIZED = TFLITE_2_14.derive(
    name="tflite-2.14-opt",
    source=replace(TFLITE_2_14.source, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES", cpu="x86-64 with AVX"),
    arithmetic=replace(TFLITE_2_14.arithmetic, requantize_gemm=HalfUpTwice.of),
    kernels=OPTIMIZED_2_14.overlaid(OPTIMIZED_2_14_X86),
)

TFLITE_2_14_OPT = TFLITE_2_14_OPTIMIZED.within(registered_for_optimized).measured()
