"""`litert-2.0-ref`: LiteRT 2.0.3, BUILTIN_REF, x86-64; 1.4.0 gives the same bits.

Some adjoint BATCH_MATMULs are refused, which these releases fold wrongly.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.registry import UP_TO_LITERT_2_0
from tflq.kernels.earlier.releases import in_reference
from tflq.profiles.litert_ref import LITERT_REF

#: What the resolvers of 2.0 share, whatever they register of it.
LITERT_2_0 = LITERT_REF.derive(
    name="litert-2.0-ref", source=replace(LITERT_REF.source, version="2.0.3"), kernels=UP_TO_LITERT_2_0
)

LITERT_2_0_REF = LITERT_2_0.within(in_reference("2.0"))
