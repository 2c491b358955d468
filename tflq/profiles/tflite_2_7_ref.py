"""`tflite-2.7-ref`: tflite-runtime 2.7.0, BUILTIN_REF, x86-64; 2.8.0 gives the same bits.

TRANSPOSE_CONV of 16-bit activations is not that of 2.9.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_7, UP_TO_2_8
from tflq.kernels.earlier.releases import in_reference
from tflq.profiles.tflite_2_9_ref import TFLITE_2_9

#: What the resolvers of 2.7 share, whatever they register of it.
TFLITE_2_7 = TFLITE_2_9.derive(
    name="tflite-2.7-ref", source=replace(TFLITE_2_9.source, version="2.7.0"), kernels=UP_TO_2_8.overlaid(UP_TO_2_7)
)

TFLITE_2_7_REF = TFLITE_2_7.within(in_reference("2.7"))
