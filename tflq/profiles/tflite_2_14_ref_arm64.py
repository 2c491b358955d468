"""`tflite-2.14-ref-arm64`: tflite-runtime 2.14.0, BUILTIN_REF, AArch64.

The wheel behaves as built with float arithmetic that may be reordered: quotients by a constant are products.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.arm64.registry import REFERENCE_2_14_ARM64
from tflq.kernels.earlier.acceptance import registered_for_reference
from tflq.kernels.promises import floats_are_close
from tflq.numerics.multiply_add import fused
from tflq.numerics.stages import HalfUpTwice
from tflq.profiles.litert_ref_arm64 import FUSED_FLOATS
from tflq.profiles.tflite_2_14_ref import TFLITE_2_14

#: What the resolvers share on AArch64.
TFLITE_2_14_ARM64 = TFLITE_2_14.derive(
    name="tflite-2.14-ref-arm64",
    source=replace(TFLITE_2_14.source, cpu="AArch64"),
    arithmetic=replace(TFLITE_2_14.arithmetic, requantize_simd=HalfUpTwice.of, multiply_add=fused),
    kernels=floats_are_close(TFLITE_2_14.kernels, FUSED_FLOATS).overlaid(REFERENCE_2_14_ARM64),
)

TFLITE_2_14_REF_ARM64 = TFLITE_2_14_ARM64.within(registered_for_reference).measured()
