"""`tflite-2.11-opt`: tflite-runtime 2.11.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64, one thread.

2.10.0 gives the same bits. TRANSPOSE_CONV knows no fused activation; there is no vector code.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_11
from tflq.kernels.earlier.releases import in_optimized
from tflq.profiles.tflite_2_12_opt import TFLITE_2_12_SCALAR

#: What the optimized resolver computes, whatever it registers of it.
TFLITE_2_11_OPTIMIZED = TFLITE_2_12_SCALAR.derive(
    name="tflite-2.11-opt",
    source=replace(TFLITE_2_12_SCALAR.source, version="2.11.0", cpu="x86-64"),
    kernels=UP_TO_2_11,
)

TFLITE_2_11_OPT = TFLITE_2_11_OPTIMIZED.within(in_optimized("2.11"))
