"""`litert-xnnpack-arm64`: LiteRT 2.3, BUILTIN, AArch64 Linux, one thread, on cores that XNNPACK does not take for a
Cortex-A53: what most phones and boards run.

Against x86, uint8 results and products are scaled exactly, half up; int8 convolutions are not.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.xnnpack.registry import xnnpack_over
from tflq.numerics.float32_stages import ExactHalfUp
from tflq.profiles.litert_opt import LITERT_OPT

LITERT_XNNPACK_ARM64 = LITERT_OPT.derive(
    name="litert-xnnpack-arm64",
    source=replace(LITERT_OPT.source, resolver="BUILTIN", cpu="AArch64, Cortex-A72, A76 and later"),
    arithmetic=replace(LITERT_OPT.arithmetic, xnnpack_uint8_gemm=ExactHalfUp.of, xnnpack_product=ExactHalfUp.of),
    kernels=xnnpack_over(LITERT_OPT.kernels),
)
