"""`tflite-2.7-opt`: tflite-runtime 2.7.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64, one thread.

2.8.0 gives the same bits. TRANSPOSE_CONV of 16-bit activations is not that of 2.9.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_7, UP_TO_2_8
from tflq.kernels.earlier.releases import in_optimized
from tflq.profiles.tflite_2_9_opt import TFLITE_2_9_OPTIMIZED

#: What the optimized resolver computes, whatever it registers of it.
TFLITE_2_7_OPTIMIZED = TFLITE_2_9_OPTIMIZED.derive(
    name="tflite-2.7-opt",
    source=replace(TFLITE_2_9_OPTIMIZED.source, version="2.7.0"),
    kernels=UP_TO_2_8.overlaid(UP_TO_2_7),
)

TFLITE_2_7_OPT = TFLITE_2_7_OPTIMIZED.within(in_optimized("2.7"))
