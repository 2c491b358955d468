"""`litert-opt-arm64`: LiteRT 2.3, BUILTIN_WITHOUT_DEFAULT_DELEGATES, AArch64, one thread.

Integer results do not depend on the core: Cortex-A53, A72, A76 and one with i8mm agree; SVE and SME were not tried.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.arm64.registry import OPTIMIZED_ARM64
from tflq.kernels.promises import floats_are_close
from tflq.numerics.multiply_add import fused
from tflq.numerics.stages import SingleRounding
from tflq.profiles.litert_opt import LITERT_OPT
from tflq.profiles.litert_ref_arm64 import FUSED_FLOATS

LITERT_OPT_ARM64 = LITERT_OPT.derive(
    name="litert-opt-arm64",
    source=replace(LITERT_OPT.source, cpu="AArch64 without SVE"),
    arithmetic=replace(LITERT_OPT.arithmetic, requantize_gemm=SingleRounding.of, multiply_add=fused),
    kernels=floats_are_close(LITERT_OPT.kernels, FUSED_FLOATS).overlaid(OPTIMIZED_ARM64),
).measured()
