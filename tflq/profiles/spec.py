"""`spec`: the arithmetic that is meant, which is `litert-ref` with its known faults mended (tflq/profiles/faults.py).

No runtime computes it. It is for those who build one: where it differs from `litert-ref`, the runtime is at fault.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.table import catalogue
from tflq.profiles.litert_ref import LITERT_REF

#: Where the mended rows are: TensorFlow Lite Micro does not have these faults.
_MENDED = catalogue(
    "tflq.kernels.micro",
    {"CONV_2D": "conv_2d", "FULLY_CONNECTED": "fully_connected", "SUM": "sum", "SVDF": "svdf_float32"},
)

SPEC = LITERT_REF.derive(
    name="spec",
    source=replace(LITERT_REF.source, package="none", version="as LiteRT 2.3.0", resolver="none", cpu="any"),
    kernels=_MENDED,
)
