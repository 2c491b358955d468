"""STABLEHLO_AND: y = a & b.

| operand | shape | types                                                          |
|---------|-------|----------------------------------------------------------------|
| a, b    | equal | int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool |
| y       | as a  | as a                                                           |

Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, stablehlo_elementwise.h ApplyComputation (kAnd).
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.elementwise import INTEGERS, kernels

KERNELS = kernels("STABLEHLO_AND", np.bitwise_and, INTEGERS)
