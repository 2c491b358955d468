"""NEG: y = -x, wrapping where integers overflow.

| operand | shape | types |
|---------|-------|-------|
| x       | any   | float32, float16, int8, int16, int32, int64, not quantized |
| y       | as x  | as x |

Source: LiteRT 2.3, neg.cc Prepare, Eval.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Kernel

KERNELS = tuple(
    Kernel("NEG", f"{t} -> {t}", prepare_function(np.negative), (1, 1))
    for t in ("float32", "float16", "int8", "int16", "int32", "int64")
)
