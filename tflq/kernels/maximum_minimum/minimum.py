"""MINIMUM: y = a < b ? a : b.

| operand | shape             | types                                                   | quantization          |
|---------|-------------------|---------------------------------------------------------|-----------------------|
| a, b    | any, broadcasting | float32, float16, uint8, int8, int16, int32, int64      | takes no part         |
| y       | broadcast         | as a                                                    | takes no part         |

Codes are compared as they are, whatever their scales.
Source: LiteRT 2.3, maximum_minimum.cc Prepare, MinimumOp.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.kernel import Array, Kernel


def minimum_float(a: Array, b: Array) -> Array:
    """The second operand where the comparison fails: for a NaN in either, and for zeros of either sign."""
    return np.where(a < b, a, b)


KERNELS = (
    *(Kernel("MINIMUM", f"{t} {t} -> {t}", prepare_plain(minimum_float), (1, 4)) for t in ("float32", "float16")),
    *(
        Kernel("MINIMUM", f"{t} {t} -> {t}", prepare_plain(np.minimum), (1, 4))
        for t in ("uint8", "int8", "int16", "int32", "int64")
    ),
)
