"""ARG_MAX: y = the index of the largest element along an axis, the first of equal ones.

| operand | shape          | types                             | quantization  |
|---------|----------------|-----------------------------------|---------------|
| x       | rank 1 or more | float32, uint8, int8, int32, bool | takes no part |
| axis    | one element    | int32, int64                      |               |
| y       | x without axis | int32, int64                      |               |

Source: LiteRT 2.3, arg_min_max.cc; reference/arg_min_max.h ArgMinMax.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.extremum import kernels

KERNELS = kernels("ARG_MAX", np.argmax, -np.inf)
