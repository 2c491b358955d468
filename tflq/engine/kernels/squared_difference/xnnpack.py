"""SQUARED_DIFFERENCE of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.xnnpack_floats import computing
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.squared_difference import reference
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.flushing import to_normal_float32
from tflq.typing import Array


def _squared_difference(x: Array, y: Array) -> Array:
    return np.asarray(to_normal_float32(x - y).astype(np.float64) ** 2)


KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"), computing("SQUARED_DIFFERENCE", reference.KERNELS, _squared_difference)
)
