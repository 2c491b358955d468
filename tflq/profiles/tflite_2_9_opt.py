"""`tflite-2.9-opt`: tflite-runtime 2.9.1, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64, one thread.

MEAN is the reference's; FULLY_CONNECTED knows one weight scale only.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_9
from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.optimized.registry import OPTIMIZED_2_9
from tflq.profiles.tflite_2_11_opt import TFLITE_2_11_OPTIMIZED

#: What the optimized resolver computes, whatever it registers of it.
TFLITE_2_9_OPTIMIZED = TFLITE_2_11_OPTIMIZED.derive(
    name="tflite-2.9-opt",
    source=replace(TFLITE_2_11_OPTIMIZED.source, version="2.9.1"),
    kernels=UP_TO_2_9.overlaid(OPTIMIZED_2_9),
)

TFLITE_2_9_OPT = TFLITE_2_9_OPTIMIZED.within(in_optimized("2.9"))
