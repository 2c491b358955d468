"""CEIL and FLOOR of float32 by XNNPACK: see tflq/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.xnnpack_floats import computing
from tflq.kernels.kernel import valid
from tflq.kernels.rounding import ceil, floor
from tflq.kernels.validity import xnnpack

KERNELS = valid(
    xnnpack("litert-2.3", cpu="x86-64"),
    computing("CEIL", ceil.KERNELS, np.ceil, 1),
    computing("FLOOR", floor.KERNELS, np.floor, 1),
)
