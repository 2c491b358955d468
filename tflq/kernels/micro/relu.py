"""RELU of TensorFlow Lite Micro: its multiplier is evaluated in float64.

| operand | shape | types       | quantization                    |
|---------|-------|-------------|---------------------------------|
| x       | any   | int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x        | per tensor, may differ from x's |

Source: tflite-micro 0.dev20261023 as it was seen to run; sources of August 2026 (activations_common.cc
CalculateReluOpData) evaluate it in float32.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.relu import kernels


def float64_quotient(x: np.float32, y: np.float32) -> np.float64:
    """scale(x) / scale(y) in float64."""
    return np.float64(np.float64(x) / np.float64(y))


_, *_QUANTIZED = kernels("RELU", 0.0, None, ("int8", "int16"), (1, 3), float64_quotient)
KERNELS = tuple(_QUANTIZED)
