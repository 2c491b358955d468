"""STABLEHLO_ADD, STABLEHLO_MULTIPLY, STABLEHLO_MAXIMUM, STABLEHLO_MINIMUM, element by element.

| operand | shape | types                                                     |
|---------|-------|-----------------------------------------------------------|
| a, b    | equal | float16, float32, float64, integers of 8 to 64 bits, bool |
| y       | as a  | as a                                                      |

Integers wrap. The sum of two bool is true if one is, the product if both are. MAXIMUM and MINIMUM give a if the
operands are equal or one is NaN.
Source: LiteRT 2.3, stablehlo_elementwise.h ApplyComputation (kAdd, kMul, kMax, kMin).
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.elementwise import NUMBERS, Choice, kernels

KERNELS = (
    *kernels("STABLEHLO_ADD", np.add, NUMBERS),
    *kernels("STABLEHLO_MULTIPLY", np.multiply, NUMBERS),
    *kernels("STABLEHLO_MAXIMUM", Choice(largest=True), NUMBERS),
    *kernels("STABLEHLO_MINIMUM", Choice(largest=False), NUMBERS),
)
