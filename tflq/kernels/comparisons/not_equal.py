"""NOT_EQUAL: y = a != b.

| operand | shape             | types                                | quantization                  |
|---------|-------------------|--------------------------------------|-------------------------------|
| a, b    | any, broadcasting | uint8, int8, int16                    | per tensor, may differ        |
|         |                   | float32, float16, int32, int64, bool, | string                        |
| y       | broadcast         | bool                                 |                               |

Source: LiteRT 2.3, comparisons.cc NotEqualEval; reference/comparisons.h.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.comparison import kernels

KERNELS = kernels("NOT_EQUAL", np.not_equal, ("bool", "string"), (1, 4))
