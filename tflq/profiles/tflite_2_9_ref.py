"""`tflite-2.9-ref`: tflite-runtime 2.9.1, BUILTIN_REF, x86-64.

MEAN over images is not that of 2.11; FULLY_CONNECTED knows one weight scale only.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_2_9
from tflq.kernels.earlier.releases import in_reference
from tflq.profiles.tflite_2_11_ref import TFLITE_2_11

#: What the resolvers of 2.9 share, whatever they register of it.
TFLITE_2_9 = TFLITE_2_11.derive(
    name="tflite-2.9-ref", source=replace(TFLITE_2_11.source, version="2.9.1"), kernels=UP_TO_2_9
)

TFLITE_2_9_REF = TFLITE_2_9.within(in_reference("2.9"))
