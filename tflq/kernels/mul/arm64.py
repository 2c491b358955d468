"""MUL of float32 on AArch64: see tflq/kernels/families/float_limits.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.float_limits import COMPARED, in_vectors, limited, of_equals, where_equal
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt, ref

KERNELS = (
    *valid(opt(cpu="arm64"), limited("MUL", np.multiply, in_vectors, (1, 8))),
    *valid(
        ref(until="tflite-2.14", cpu="arm64"), limited("MUL", np.multiply, where_equal(of_equals, COMPARED), (1, 8))
    ),
)
