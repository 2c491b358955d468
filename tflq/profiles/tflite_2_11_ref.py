"""`tflite-2.11-ref`: tflite-runtime 2.11.0, BUILTIN_REF, x86-64; 2.10.0 gives the same bits.

TRANSPOSE_CONV knows no fused activation; there is no vector code.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_11
from tflq.kernels.earlier.releases import in_reference
from tflq.profiles.tflite_2_12_ref import TFLITE_2_12

#: What the resolvers of 2.11 share, whatever they register of it.
TFLITE_2_11 = TFLITE_2_12.derive(
    name="tflite-2.11-ref", source=replace(TFLITE_2_12.source, version="2.11.0", cpu="x86-64"), kernels=UP_TO_2_11
)

TFLITE_2_11_REF = TFLITE_2_11.within(in_reference("2.11"))
