"""LOGICAL_NOT: y = not x.

| operand | shape | types |
|---------|-------|-------|
| x       | any   | bool |
| y       | as x  | as x |

Source: LiteRT 2.3, elementwise.cc LogicalNotEval.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Kernel

KERNELS = (Kernel("LOGICAL_NOT", "bool -> bool", prepare_function(np.logical_not), (1, 1)),)
