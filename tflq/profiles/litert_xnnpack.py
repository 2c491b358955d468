"""`litert-xnnpack`: LiteRT 2.3 (and TensorFlow 2.21), BUILTIN, x86-64 with AVX2, one thread: what Python users get.

8-bit results do not depend on the vector extension: every one rounds a float32 product half to even. Float results of
FULLY_CONNECTED with scales of blocks do: they are those of AVX2.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.xnnpack.registry import xnnpack_over
from tflq.numerics.block_products import summed_in_four_lanes
from tflq.profiles.litert_opt import LITERT_OPT

LITERT_XNNPACK = LITERT_OPT.derive(
    name="litert-xnnpack",
    source=replace(LITERT_OPT.source, resolver="BUILTIN", vectors="AVX2"),
    arithmetic=replace(LITERT_OPT.arithmetic, xnnpack_blocks=summed_in_four_lanes),
    kernels=xnnpack_over(LITERT_OPT.kernels),
).measured()
