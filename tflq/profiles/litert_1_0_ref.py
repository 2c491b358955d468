"""`litert-1.0-ref`: LiteRT 1.0.1, BUILTIN_REF, x86-64; 1.2.0 gives the same bits.

FULLY_CONNECTED scales as every other operator does; from 1.4 on as in 2.3.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_LITERT_1_0
from tflq.kernels.earlier.releases import in_reference
from tflq.numerics.arithmetic import prepared_real
from tflq.numerics.stages import DoubleRounding, WideRounding
from tflq.profiles.litert_2_0_ref import LITERT_2_0

LITERT_1_0_REF = LITERT_2_0.derive(
    name="litert-1.0-ref",
    source=replace(LITERT_2_0.source, version="1.0.1"),
    arithmetic=replace(
        LITERT_2_0.arithmetic,
        dense_real=prepared_real,
        requantize_dense=DoubleRounding.of,
        requantize_dense_wide=WideRounding.of,
    ),
    kernels=UP_TO_LITERT_1_0,
).within(in_reference("1.0"))
