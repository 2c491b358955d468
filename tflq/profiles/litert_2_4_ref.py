"""`litert-2.4-ref`: LiteRT 2.4 (nightly of October 2026), BUILTIN_REF, x86-64: multipliers are computed in float64.

Seen in RELU, RELU6, ABS, LEAKY_RELU, PRELU, MUL, BATCH_MATMUL, and in convolutions of uint8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.profiles.litert_ref import LITERT_REF
from tflq.profiles.profile import Source

LITERT_2_4_REF = LITERT_REF.derive(
    name="litert-2.4-ref",
    source=Source(package="ai-edge-litert-nightly", version="2.4.0.dev20261026", resolver="BUILTIN_REF", cpu="x86-64"),
    arithmetic=replace(LITERT_REF.arithmetic, scale_type=np.float64),
)
