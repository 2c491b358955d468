"""SQUARE of float32 by XNNPACK: see tflq/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.xnnpack_floats import computing
from tflq.kernels.kernel import valid
from tflq.kernels.roots import reference
from tflq.kernels.validity import xnnpack

KERNELS = (*valid(xnnpack("litert-2.3", cpu="x86-64"), computing("SQUARE", reference.SQUARE, np.square, 1)),)
