"""`litert-2.4-xnnpack`: `litert-xnnpack` with the multipliers of `litert-2.4-ref`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.profiles.litert_2_4_ref import LITERT_2_4_REF
from tflq.profiles.litert_xnnpack import LITERT_XNNPACK

LITERT_2_4_XNNPACK = LITERT_XNNPACK.derive(
    name="litert-2.4-xnnpack",
    source=replace(LITERT_XNNPACK.source, package=LITERT_2_4_REF.source.package, version=LITERT_2_4_REF.source.version),
    arithmetic=replace(LITERT_XNNPACK.arithmetic, scale_type=np.float64),
)
