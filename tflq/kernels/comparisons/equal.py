"""EQUAL: y = a == b.

| operand | shape             | types                                | quantization                  |
|---------|-------------------|--------------------------------------|-------------------------------|
| a, b    | any, broadcasting | uint8, int8, int16                    | per tensor, may differ        |
|         |                   | float32, float16, int32, int64, bool, | string                        |
| y       | broadcast         | bool                                 |                               |

Source: LiteRT 2.3, comparisons.cc EqualEval; reference/comparisons.h.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.comparison import kernels

KERNELS = kernels("EQUAL", np.equal, ("bool", "string"), (1, 5))
