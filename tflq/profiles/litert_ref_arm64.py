"""`litert-ref-arm64`: LiteRT 2.3, BUILTIN_REF, AArch64.

The compiler fuses a * b + c of one expression: in tables of 513 samples and in CONCATENATION of rescaled uint8. Float
operators are fused here and there, so that nothing is claimed of them. LSTM of kernel type BASIC multiplies with ruy in
any resolver.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.arm64.registry import REFERENCE_ARM64
from tflq.kernels.exactness import close
from tflq.kernels.promises import floats_are_close
from tflq.numerics.multiply_add import fused
from tflq.numerics.stages import HalfUpTwice, SingleRounding
from tflq.profiles.litert_ref import LITERT_REF

FUSED_FLOATS = close("compilers for AArch64 fuse products and sums, in some kernels and not in others")

LITERT_REF_ARM64 = LITERT_REF.derive(
    name="litert-ref-arm64",
    source=replace(LITERT_REF.source, cpu="AArch64"),
    arithmetic=replace(
        LITERT_REF.arithmetic, requantize_gemm=SingleRounding.of, requantize_simd=HalfUpTwice.of, multiply_add=fused
    ),
    kernels=floats_are_close(LITERT_REF.kernels, FUSED_FLOATS).overlaid(REFERENCE_ARM64),
).measured()
