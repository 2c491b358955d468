"""LEAKY_RELU of TensorFlow Lite Micro: its multipliers are evaluated in float64.

| operand | shape | types       | quantization                    |
|---------|-------|-------------|---------------------------------|
| x       | any   | int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x        | as x                            |

Source: tflite-micro (October 2026), leaky_relu_common.cc CalculateOpDataLeakyRelu; sources of August 2026 and before
evaluate them in float32.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.kernel import Kernel, Operand
from tflq.kernels.reference import leaky_relu


def float64_multipliers(x: Operand, y: Operand, alpha: np.float32) -> tuple[np.float64, np.float64]:
    """scale(x) / scale(y) and the same times alpha, every step in float64."""
    scale_x, scale_y = np.float64(x.scale), np.float64(y.scale)
    return np.float64(scale_x / scale_y), np.float64(scale_x * np.float64(alpha) / scale_y)


prepare_quantized = partial(leaky_relu.prepare_quantized, multipliers=float64_multipliers)

KERNELS = tuple(Kernel("LEAKY_RELU", f"{t} -> {t}", prepare_quantized, (1, 2)) for t in ("int8", "int16"))
