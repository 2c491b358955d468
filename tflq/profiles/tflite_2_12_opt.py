"""`tflite-2.12-opt`: tflite-runtime 2.12.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64, one thread, a package built with
vector code: NEON code by way of SSE.

ruy scales int8 matrix products once, half up. MEAN and SUM are not those of 2.13.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_12
from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_2_12, OPTIMIZED_2_12_VECTORS
from tflq.numerics.stages import HalfUpTwice, SingleRounding
from tflq.profiles.tflite_2_13_opt import TFLITE_2_13_OPTIMIZED

#: What the optimized resolver computes without vector code, whatever it registers of it.
TFLITE_2_12_SCALAR = TFLITE_2_13_OPTIMIZED.derive(
    name="tflite-2.12-opt",
    source=replace(TFLITE_2_13_OPTIMIZED.source, version="2.12.0", cpu="x86-64, SSE4.1"),
    arithmetic=replace(TFLITE_2_13_OPTIMIZED.arithmetic, requantize_gemm=SingleRounding.of),
    kernels=UP_TO_2_12.overlaid(OPTIMIZED_2_12),
)

#: The same with it.
TFLITE_2_12_OPTIMIZED = TFLITE_2_12_SCALAR.derive(
    name="tflite-2.12-opt",
    arithmetic=replace(TFLITE_2_12_SCALAR.arithmetic, requantize_simd=HalfUpTwice.of),
    kernels=OPTIMIZED_2_12_VECTORS,
)

TFLITE_2_12_OPT = TFLITE_2_12_OPTIMIZED.within(in_optimized("2.12"))
