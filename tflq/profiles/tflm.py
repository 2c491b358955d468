"""`tflm`: TensorFlow Lite Micro with its reference kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.micro.acceptance import accepted
from tflq.kernels.micro.registry import MICRO
from tflq.numerics.stages import DoubleRounding, WideRounding
from tflq.profiles.litert_ref import LITERT_REF
from tflq.profiles.profile import Source

_SHARED = LITERT_REF.derive(
    name="tflm",
    source=Source(package="tflite-micro", version="0.dev20261023", resolver="reference kernels", cpu="any"),
    arithmetic=replace(
        LITERT_REF.arithmetic,
        requantize_dense=DoubleRounding.of,
        requantize_dense_wide=WideRounding.of,
        scale_type=np.float64,
    ),
    without=("QUANTIZE",),  # of other types, all of them among its own
).within(accepted)
TFLM = _SHARED.derive(name="tflm", kernels=MICRO)
