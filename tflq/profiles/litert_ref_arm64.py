"""`litert-ref-arm64`: LiteRT 2.3, BUILTIN_REF, AArch64.

The compiler fuses a * b + c of one expression: in tables of 513 samples and in CONCATENATION of rescaled uint8.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.numerics.multiply_add import fused
from tflq.profiles.litert_ref import LITERT_REF

LITERT_REF_ARM64 = LITERT_REF.derive(
    name="litert-ref-arm64",
    source=replace(LITERT_REF.source, cpu="AArch64"),
    arithmetic=replace(LITERT_REF.arithmetic, multiply_add=fused),
)
