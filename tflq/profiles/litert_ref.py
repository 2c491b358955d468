"""`litert-ref`: LiteRT 2.3 (and TensorFlow 2.21), BUILTIN_REF, x86-64."""

from __future__ import annotations

from tflq.kernels.reference.registry import REFERENCE
from tflq.numerics.arithmetic import Arithmetic, exact_real
from tflq.numerics.float_rounding import FloatRounding
from tflq.numerics.stages import DoubleRounding, WideRounding
from tflq.profiles.profile import Profile, Source

LITERT_REF = Profile(
    name="litert-ref",
    source=Source(package="ai-edge-litert", version="2.3.0", resolver="BUILTIN_REF", cpu="x86-64"),
    arithmetic=Arithmetic(
        requantize=DoubleRounding.of,
        requantize_gemm=DoubleRounding.of,
        requantize_simd=DoubleRounding.of,
        requantize_wide=WideRounding.of,
        dense_real=exact_real,
        requantize_dense=FloatRounding.of,
        requantize_dense_wide=FloatRounding.of_wide,
    ),
    kernels=REFERENCE,
)
