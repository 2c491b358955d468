"""STABLEHLO_MINIMUM: the smaller of a and b.

| operand | shape | types                                                     |
|---------|-------|-----------------------------------------------------------|
| a, b    | equal | float16, float32, float64, integers of 8 to 64 bits, bool |
| y       | as a  | as a                                                      |

a where they are equal or one is NaN.
Source: LiteRT 2.3, stablehlo_elementwise.h ApplyComputation (kMin).
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.elementwise import NUMBERS, kernels
from tflq.kernels.kernel import Array


def smaller(a: Array, b: Array) -> Array:
    """Source: std::min."""
    return np.where(b < a, b, a)


KERNELS = kernels("STABLEHLO_MINIMUM", smaller, NUMBERS)
