"""Rectifiers of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

from tflq.engine.kernels.families.xnnpack_floats import clamping
from tflq.engine.kernels.kernel import valid
from tflq.engine.kernels.rectifiers import reference
from tflq.engine.kernels.validity import xnnpack

KERNELS = (
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        clamping("RELU", reference.RELU, 0, None),
        clamping("RELU6", reference.RELU6, 0, 6),
        clamping("RELU_N1_TO_1", reference.RELU_N1_TO_1, -1, 1),
    ),
)
