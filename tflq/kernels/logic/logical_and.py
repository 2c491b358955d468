"""LOGICAL_AND: y = a and b.

| operand | shape             | types |
|---------|-------------------|-------|
| a, b    | any, broadcasting | bool  |
| y       | broadcast         | bool  |

Source: LiteRT 2.3, logical.cc Prepare, LogicalImpl.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.kernel import Kernel

KERNELS = (Kernel("LOGICAL_AND", "bool bool -> bool", prepare_plain(np.logical_and), (1, 1)),)
