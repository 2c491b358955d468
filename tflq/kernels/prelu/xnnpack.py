"""PRELU of float32 by XNNPACK: see tflq/kernels/families/xnnpack_floats.py."""

from __future__ import annotations

from tflq.kernels.families.xnnpack_floats import sloping
from tflq.kernels.kernel import valid
from tflq.kernels.prelu import reference
from tflq.kernels.validity import xnnpack

KERNELS = valid(xnnpack("litert-2.3", cpu="x86-64"), sloping("PRELU", reference.KERNELS, 2))
