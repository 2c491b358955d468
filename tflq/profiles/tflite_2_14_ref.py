"""`tflite-2.14-ref`: tflite-runtime 2.14.0, BUILTIN_REF, x86-64.

FULLY_CONNECTED scales as every other operator does; the float64 scaling came in April 2025. What else differs is in
tflq/kernels/earlier.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.acceptance import registered_for_reference
from tflq.kernels.earlier.registry import EARLIER
from tflq.numerics.arithmetic import prepared_real
from tflq.numerics.stages import DoubleRounding, WideRounding
from tflq.profiles.litert_ref import LITERT_REF
from tflq.profiles.profile import Source

#: What the resolvers of 2.14 share, whatever they register of it.
TFLITE_2_14 = LITERT_REF.derive(
    name="tflite-2.14-ref",
    source=Source(package="tflite-runtime", version="2.14.0", resolver="BUILTIN_REF", cpu="x86-64"),
    arithmetic=replace(
        LITERT_REF.arithmetic,
        dense_real=prepared_real,
        requantize_dense=DoubleRounding.of,
        requantize_dense_wide=WideRounding.of,
    ),
    kernels=EARLIER,
)

TFLITE_2_14_REF = TFLITE_2_14.within(registered_for_reference).measured()
