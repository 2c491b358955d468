"""`litert-xnnpack-avx512`: LiteRT 2.3, BUILTIN, x86-64 with AVX-512 VNNI, one thread.

Integers and hybrid operators are as `litert-xnnpack`, except for sums of FULLY_CONNECTED with scales of blocks; leaky
rectifiers copy negative zeros.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.numerics.arithmetic import below_zero
from tflq.numerics.block_products import summed_by_block
from tflq.profiles.litert_xnnpack import LITERT_XNNPACK

LITERT_XNNPACK_AVX512 = LITERT_XNNPACK.derive(
    name="litert-xnnpack-avx512",
    source=replace(LITERT_XNNPACK.source, cpu="x86-64 with AVX-512 VNNI", vectors="AVX-512 VNNI"),
    arithmetic=replace(LITERT_XNNPACK.arithmetic, xnnpack_blocks=summed_by_block, xnnpack_negative=below_zero),
)
