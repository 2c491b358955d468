"""GELU of floats: error function and hyperbolic tangent of an Eigen of that time, which are not reproduced.

Source: TensorFlow 2.14 lite/kernels/gelu.cc, reference/gelu.h Gelu.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.exactness import close
from tflq.kernels.gelu.reference import KERNELS as REFERENCE
from tflq.kernels.kernel import valid
from tflq.kernels.validity import tflite

UNCLAIMED = close("erf and tanh of an Eigen of that time, which are not reproduced")

KERNELS = valid(
    tflite(until="tflite-2.14"),
    *(replace(row, versions=(1, 2), exactness=UNCLAIMED) for row in REFERENCE if row.signature.is_float),
)
