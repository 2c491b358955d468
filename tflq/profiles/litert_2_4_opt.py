"""`litert-2.4-opt`: `litert-opt` with the multipliers of `litert-2.4-ref`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.profiles.litert_2_4_ref import LITERT_2_4_REF
from tflq.profiles.litert_opt import LITERT_OPT

LITERT_2_4_OPT = LITERT_OPT.derive(
    name="litert-2.4-opt",
    source=replace(LITERT_OPT.source, package=LITERT_2_4_REF.source.package, version=LITERT_2_4_REF.source.version),
    arithmetic=replace(LITERT_OPT.arithmetic, scale_type=np.float64),
)
