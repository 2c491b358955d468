"""`tf-2.5-ref`: TensorFlow 2.5.3, the package for x86-64, BUILTIN_REF. It is built with vector code.

SOFTMAX is the optimized resolver's; LOG_SOFTMAX of 8 bits gives the lowest code.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import REFERENCE_2_5, SHARED_2_5, UP_TO_2_5, VECTORS_2_12
from tflq.kernels.earlier.releases import in_reference
from tflq.numerics.stages import HalfUpTwice
from tflq.profiles.tflite_2_7_ref import TFLITE_2_7

#: What the resolvers of 2.5 share without vector code, whatever they register of it.
TF_2_5 = TFLITE_2_7.derive(
    name="tf-2.5-ref",
    source=replace(TFLITE_2_7.source, package="tensorflow-cpu", version="2.5.3", cpu="x86-64 with AVX"),
    kernels=UP_TO_2_5,
)

TF_2_5_REF = TF_2_5.derive(
    name="tf-2.5-ref",
    arithmetic=replace(TF_2_5.arithmetic, requantize_simd=HalfUpTwice.of),
    kernels=VECTORS_2_12.overlaid(SHARED_2_5).overlaid(REFERENCE_2_5),
).within(in_reference("2.5"))
