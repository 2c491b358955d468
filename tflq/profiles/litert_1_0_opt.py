"""`litert-1.0-opt`: LiteRT 1.0.1, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX2, one thread.

BATCH_MATMUL of int8 to int32 takes zero points off, FULLY_CONNECTED of 16-bit activations scales as every other
operator does; 1.2.0 gives the same bits.

4-bit weights of activations other than int8 are refused, which this release reads packed.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_LITERT_1_0
from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_1_2
from tflq.numerics.arithmetic import prepared_real
from tflq.numerics.stages import DoubleRounding, WideRounding
from tflq.profiles.litert_1_4_opt import LITERT_1_4_OPTIMIZED

#: What the optimized resolver computes, whatever it registers of it.
LITERT_1_0_OPTIMIZED = LITERT_1_4_OPTIMIZED.derive(
    name="litert-1.0-opt",
    source=replace(LITERT_1_4_OPTIMIZED.source, version="1.0.1"),
    arithmetic=replace(
        LITERT_1_4_OPTIMIZED.arithmetic,
        dense_real=prepared_real,
        requantize_dense=DoubleRounding.of,
        requantize_dense_wide=WideRounding.of,
    ),
    kernels=OPTIMIZED_1_2.overlaid(UP_TO_LITERT_1_0),
)

LITERT_1_0_OPT = LITERT_1_0_OPTIMIZED.within(in_optimized("1.0"))
