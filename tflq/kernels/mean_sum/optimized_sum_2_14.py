"""SUM of 2.14: plain 16-bit codes are added, and wrap, where both quantizations are equal, and are refused elsewhere.

Operands and options: tflq/kernels/mean_sum/sum.py. Eight bits as in later releases.
Source: TensorFlow 2.14 lite/kernels/reduce.cc EvalSum.
"""

from __future__ import annotations

from tflq.kernels.families.reduction import AXES
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.mean_sum.earlier_sum_2_13 import INT16
from tflq.kernels.mean_sum.optimized_sum import prepare_quantized
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(until="tflite-2.14"),
    *(Kernel("SUM", f"{t} int32 -> {t}", prepare_quantized, (1, 2), AXES) for t in ("uint8", "int8")),
    INT16,
)
