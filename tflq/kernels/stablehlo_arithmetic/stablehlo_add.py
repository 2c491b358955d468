"""STABLEHLO_ADD: y = a + b.

| operand | shape | types                                                     |
|---------|-------|-----------------------------------------------------------|
| a, b    | equal | float16, float32, float64, integers of 8 to 64 bits, bool |
| y       | as a  | as a                                                      |

Integers wrap; the sum of two bool is true where one is.
Source: LiteRT 2.3, stablehlo_elementwise.h ApplyComputation (kAdd).
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.elementwise import NUMBERS, kernels

KERNELS = kernels("STABLEHLO_ADD", np.add, NUMBERS)
