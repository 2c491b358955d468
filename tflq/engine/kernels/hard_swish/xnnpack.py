"""HARD_SWISH of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.hard_swish import reference
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics import xnnpack_functions

KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"), applying("HARD_SWISH", reference.ROWS, lambda *_: xnnpack_functions.HARD_SWISH)
)
