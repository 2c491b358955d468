"""`tf-1.15-ref`: TensorFlow 1.15, the reference resolver, x86-64 with SSE4.1: what classic uint8 literature describes.

The Python package offers the optimized resolver only; this one is the C++ library's.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.tf1.leaky_relu import STATIC_ALPHA
from tflq.kernels.tf1.registry import TF1_REFERENCE
from tflq.numerics.arithmetic import prepared_real
from tflq.numerics.stages import DoubleRounding, HalfUpTwice
from tflq.profiles.litert_ref import LITERT_REF
from tflq.profiles.profile import Profile, Source

TF_1_15_REF = Profile(
    name="tf-1.15-ref",
    source=Source(package="tensorflow", version="1.15.0", resolver="BuiltinRefOpResolver", cpu="x86-64, SSE4.1"),
    arithmetic=replace(
        LITERT_REF.arithmetic,
        requantize_simd=HalfUpTwice.of,
        dense_real=prepared_real,
        requantize_dense=DoubleRounding.of,
    ),
    kernels=TF1_REFERENCE,
)


def with_static_alpha(profile: Profile) -> Profile:
    """A profile of r1.15 whose uint8 LEAKY_RELUs all use the alpha of the first one that runs.

    That is what a process does which runs one model and nothing before it: the kernel keeps alpha in a static.
    """
    return profile.derive(f"{profile.name}+static-alpha", kernels=STATIC_ALPHA)
