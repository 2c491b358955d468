"""GREATER: y = a > b.

| operand | shape             | types                                | quantization                  |
|---------|-------------------|--------------------------------------|-------------------------------|
| a, b    | any, broadcasting | uint8, int8                           | per tensor, may differ        |
|         |                   | float32, float16, int32, int64, int16 |                               |
| y       | broadcast         | bool                                 |                               |

Source: LiteRT 2.3, comparisons.cc GreaterEval; reference/comparisons.h.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.comparison import kernels

KERNELS = kernels("GREATER", np.greater, ("int16",), (1, 2))
