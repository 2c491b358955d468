"""`tflite-2.13-ref`: tflite-runtime 2.13.0, BUILTIN_REF, x86-64. SUM is not that of 2.14."""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_13
from tflq.kernels.earlier.releases import in_reference
from tflq.profiles.tflite_2_14_ref import TFLITE_2_14

#: What the resolvers of 2.13 share, whatever they register of it.
TFLITE_2_13 = TFLITE_2_14.derive(
    name="tflite-2.13-ref", source=replace(TFLITE_2_14.source, version="2.13.0"), kernels=UP_TO_2_13
)

TFLITE_2_13_REF = TFLITE_2_13.within(in_reference("2.13"))
