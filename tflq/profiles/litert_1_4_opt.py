"""`litert-1.4-opt`: LiteRT 1.4.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX2, one thread.

ruy multiplies the matrices of BATCH_MATMUL int8.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_1_4
from tflq.profiles.litert_2_0_opt import LITERT_2_0_OPTIMIZED

#: What the optimized resolver computes, whatever it registers of it.
LITERT_1_4_OPTIMIZED = LITERT_2_0_OPTIMIZED.derive(
    name="litert-1.4-opt", source=replace(LITERT_2_0_OPTIMIZED.source, version="1.4.0"), kernels=OPTIMIZED_1_4
)

LITERT_1_4_OPT = LITERT_1_4_OPTIMIZED.within(in_optimized("1.4"))
