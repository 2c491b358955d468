"""`tf-2.5-opt`: TensorFlow 2.5.3, the package for x86-64, BUILTIN_WITHOUT_DEFAULT_DELEGATES, one thread.

It is built with vector code: NEON code by way of SSE.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_5
from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_2_5, OPTIMIZED_2_5_VECTORS, OPTIMIZED_2_12_VECTORS
from tflq.numerics.stages import HalfUpTwice
from tflq.profiles.tf_2_5_ref import TF_2_5
from tflq.profiles.tflite_2_7_opt import TFLITE_2_7_OPTIMIZED

#: What the optimized resolvers of 2.3 and 2.5 share, whatever they register of it.
TF_2_5_OPTIMIZED = TFLITE_2_7_OPTIMIZED.derive(
    name="tf-2.5-opt",
    source=replace(TF_2_5.source, resolver=TFLITE_2_7_OPTIMIZED.source.resolver),
    arithmetic=replace(TFLITE_2_7_OPTIMIZED.arithmetic, requantize_simd=HalfUpTwice.of),
    kernels=UP_TO_2_5.overlaid(OPTIMIZED_2_12_VECTORS).overlaid(OPTIMIZED_2_5_VECTORS),
)

TF_2_5_OPT = TF_2_5_OPTIMIZED.derive(name="tf-2.5-opt", kernels=OPTIMIZED_2_5).within(in_optimized("2.5"))
