"""`tflite-2.12-ref`: tflite-runtime 2.12.0, BUILTIN_REF, x86-64, a package built with vector code.

MEAN and SUM are not those of 2.13. The basic LSTM multiplies one row by the matrix-vector kernel.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_12, VECTORS_2_12
from tflq.kernels.earlier.releases import in_reference
from tflq.numerics.stages import HalfUpTwice
from tflq.profiles.tflite_2_13_ref import TFLITE_2_13

#: What the resolvers of 2.12 share without vector code, whatever they register of it.
TFLITE_2_12 = TFLITE_2_13.derive(
    name="tflite-2.12-ref",
    source=replace(TFLITE_2_13.source, version="2.12.0", cpu="x86-64, SSE4.1"),
    kernels=UP_TO_2_12,
)

TFLITE_2_12_REF = TFLITE_2_12.derive(
    name="tflite-2.12-ref",
    arithmetic=replace(TFLITE_2_12.arithmetic, requantize_simd=HalfUpTwice.of),
    kernels=VECTORS_2_12,
).within(in_reference("2.12"))
