"""`litert-xnnpack-arm64`: LiteRT 2.3, BUILTIN, AArch64 Linux, one thread, on cores with dot products (Cortex-A76): what
most phones and boards run.

Against x86, uint8 results and products are scaled exactly, half up; int8 convolutions are not. Float activations meet
int8 weights in FULLY_CONNECTED only, and are scaled back without a fused multiply-add. Cores before dot products are
as `litert-xnnpack-arm64-a53` there, and those that are not of its class as this profile everywhere else.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.xnnpack.registry import ONLY_SEEN_ON_X86, xnnpack_over
from tflq.numerics.dynamic_range_float32 import rescale_apart
from tflq.numerics.float32_stages import ExactHalfUp
from tflq.profiles.litert_opt_arm64 import LITERT_OPT_ARM64

LITERT_XNNPACK_ARM64 = LITERT_OPT_ARM64.derive(
    name="litert-xnnpack-arm64",
    source=replace(LITERT_OPT_ARM64.source, resolver="BUILTIN", cpu="AArch64, Cortex-A76"),
    arithmetic=replace(
        LITERT_OPT_ARM64.arithmetic,
        xnnpack_uint8_gemm=ExactHalfUp.of,
        xnnpack_product=ExactHalfUp.of,
        xnnpack_rescale=rescale_apart,
    ),
    kernels=xnnpack_over(
        LITERT_OPT_ARM64.kernels, leaving=("conv_2d_hybrid", "elementwise"), doubtful=ONLY_SEEN_ON_X86
    ),
).measured()
