"""`litert-2.0-opt`: LiteRT 2.0.3, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX2, one thread.

Some adjoint BATCH_MATMULs and REDUCE_PRODs are refused, whose results these releases leave undefined.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_LITERT_2_0
from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED, OPTIMIZED_2_0
from tflq.profiles.litert_opt import LITERT_OPT
from tflq.profiles.litert_ref import LITERT_REF

#: What the optimized resolver computes, whatever it registers of it.
LITERT_2_0_OPTIMIZED = LITERT_REF.derive(
    name="litert-2.0-opt",
    source=replace(LITERT_OPT.source, version="2.0.3"),
    arithmetic=LITERT_OPT.arithmetic,
    kernels=OPTIMIZED.overlaid(UP_TO_LITERT_2_0).overlaid(OPTIMIZED_2_0),
)

LITERT_2_0_OPT = LITERT_2_0_OPTIMIZED.within(in_optimized("2.0"))
