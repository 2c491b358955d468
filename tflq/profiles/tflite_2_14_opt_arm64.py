"""`tflite-2.14-opt-arm64`: tflite-runtime 2.14.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, AArch64, one thread.

Vector code is that of LiteRT 2.3, and matrices are multiplied by gemmlowp, or by ruy where storage orders ask for it.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.arm64.registry import OPTIMIZED_2_14_ARM64, VECTOR_CODE_2_14
from tflq.kernels.earlier.acceptance import registered_for_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_2_14
from tflq.kernels.promises import floats_are_close
from tflq.numerics.stages import SingleRounding
from tflq.profiles.litert_ref_arm64 import FUSED_FLOATS
from tflq.profiles.tflite_2_14_ref_arm64 import TFLITE_2_14_ARM64

#: What AArch64 shares with x86-64.
_X86 = OPTIMIZED_2_14.overlaid(VECTOR_CODE_2_14)

TFLITE_2_14_OPT_ARM64 = (
    TFLITE_2_14_ARM64.derive(
        name="tflite-2.14-opt-arm64",
        source=replace(
            TFLITE_2_14_ARM64.source, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES", cpu="AArch64 without SVE"
        ),
        arithmetic=replace(TFLITE_2_14_ARM64.arithmetic, requantize_gemm=SingleRounding.of),
        kernels=floats_are_close(_X86, FUSED_FLOATS).overlaid(OPTIMIZED_2_14_ARM64),
    )
    .within(registered_for_optimized)
    .measured()
)
