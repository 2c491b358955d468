"""MEAN of 8-bit codes up to 2.12: over images as later releases, every other form as the reference kernels of 2.12.

Source: TensorFlow 2.12 lite/kernels/reduce.cc EvalMean.
"""

from __future__ import annotations

from tflq.kernels.families.reduction import AXES
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.mean_sum.earlier_mean_2_12 import prepare_general
from tflq.kernels.mean_sum.optimized_mean import over_image
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(until="tflite-2.12"),
    *(Kernel("MEAN", f"{t} int32 -> {t}", over_image(prepare_general), (1, 3), AXES) for t in ("uint8", "int8")),
)
