"""HARD_SWISH of float32 by XNNPACK: see tflq/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

from tflq.kernels.families.xnnpack_floats import applying
from tflq.kernels.hard_swish import reference
from tflq.kernels.kernel import valid
from tflq.kernels.validity import xnnpack
from tflq.numerics import xnnpack_functions

KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"), applying("HARD_SWISH", reference.ROWS, lambda *_: xnnpack_functions.HARD_SWISH)
)
