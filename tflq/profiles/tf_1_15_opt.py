"""`tf-1.15-opt`: TensorFlow 1.15, the optimized resolver, x86-64 with AVX: what the Python package runs."""

from __future__ import annotations

from tflq.kernels.tf1.registry import TF1_OPTIMIZED
from tflq.profiles.profile import Profile, Source
from tflq.profiles.tf_1_15_ref import TF_1_15_REF

TF_1_15_OPT = Profile(
    name="tf-1.15-opt",
    source=Source(package="tensorflow", version="1.15.5", resolver="BuiltinOpResolver", cpu="x86-64, AVX"),
    arithmetic=TF_1_15_REF.arithmetic,
    kernels=TF1_OPTIMIZED,
)
