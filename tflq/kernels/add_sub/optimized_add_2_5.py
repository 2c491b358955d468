"""ADD of 16-bit codes up to 2.5: the reference kernel; 8-bit codes have vector code.

Source: TensorFlow 2.5 lite/kernels/add.cc EvalAddQuantized.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.add_sub import add
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(until="tf-2.5", vectors=True), *(row for row in add.KERNELS if row.signature.starts_with(TensorType.INT16))
)
