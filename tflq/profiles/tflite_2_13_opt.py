"""`tflite-2.13-opt`: tflite-runtime 2.13.0, BUILTIN_WITHOUT_DEFAULT_DELEGATES, x86-64 with AVX or later, one thread."""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_13
from tflq.kernels.earlier.releases import in_optimized
from tflq.profiles.tflite_2_14_opt import TFLITE_2_14_OPTIMIZED

#: What the optimized resolver computes, whatever it registers of it.
TFLITE_2_13_OPTIMIZED = TFLITE_2_14_OPTIMIZED.derive(
    name="tflite-2.13-opt", source=replace(TFLITE_2_14_OPTIMIZED.source, version="2.13.0"), kernels=UP_TO_2_13
)

TFLITE_2_13_OPT = TFLITE_2_13_OPTIMIZED.within(in_optimized("2.13"))
