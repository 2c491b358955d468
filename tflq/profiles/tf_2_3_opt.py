"""`tf-2.3-opt`: TensorFlow 2.3.4, the package for x86-64, whose only resolver is the optimized one; one thread.

It is built with vector code. ruy's int8 products round twice.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_2_3
from tflq.numerics.stages import DoubleRounding
from tflq.profiles.tf_2_5_opt import TF_2_5_OPTIMIZED

TF_2_3_OPT = TF_2_5_OPTIMIZED.derive(
    name="tf-2.3-opt",
    source=replace(TF_2_5_OPTIMIZED.source, version="2.3.4", resolver="BuiltinOpResolver"),
    arithmetic=replace(TF_2_5_OPTIMIZED.arithmetic, requantize_gemm=DoubleRounding.of),
    kernels=OPTIMIZED_2_3,
).within(in_optimized("2.3"))
