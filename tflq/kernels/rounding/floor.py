"""FLOOR: y = the largest integer <= x.

| operand | shape | types |
|---------|-------|-------|
| x       | any   | float32, float16 |
| y       | as x  | as x |

Source: LiteRT 2.3, reference/floor.h Floor.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Kernel

KERNELS = tuple(Kernel("FLOOR", f"{t} -> {t}", prepare_function(np.floor), (1, 1)) for t in ("float32", "float16"))
