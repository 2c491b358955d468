"""SQUARE: y = x * x.

| operand | shape | types |
|---------|-------|-------|
| x       | any   | float32 |
| y       | as x  | as x |

Source: LiteRT 2.3, elementwise.cc SquareEval.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Kernel

KERNELS = (Kernel("SQUARE", "float32 -> float32", prepare_function(np.square), (1, 1)),)
