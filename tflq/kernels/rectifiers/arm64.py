"""RELU and RELU6 of float32 on AArch64: see tflq/kernels/families/float_limits.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.float_limits import NUMBERS, in_vectors, rectified
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import tflite

KERNELS = (
    *valid(tflite(cpu="arm64"), Kernel("RELU", "float32 -> float32", rectified(np.inf, in_vectors), (1, 3))),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"),
        Kernel("RELU6", "float32 -> float32", rectified(6.0, lambda a, b: NUMBERS), (1, 3)),
    ),
)
