"""CEIL: y = the smallest integer >= x.

| operand | shape | types   |
|---------|-------|---------|
| x       | any   | float32 |
| y       | as x  | as x    |

Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, ceil.cc; optimized_ops::Ceil.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Kernel

KERNELS = (Kernel("CEIL", "float32 -> float32", prepare_function(np.ceil), (1, 1)),)
