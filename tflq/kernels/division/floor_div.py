"""FLOOR_DIV: y = floor(a / b).

| operand | shape             | types                        |
|---------|-------------------|------------------------------|
| a, b    | any, broadcasting | float32, int32, int16, int8  |
| y       | broadcast         | as a                         |

Quantization takes no part. Division by zero raises when run, for float32 too, as the source's Eval returns an error.
Refused: the lowest int8 or int16 divided by -1. The source converts a float64 that its type cannot hold, which is
undefined: LiteRT's build saturates where it computes several elements at once and wraps elsewhere.
Source: LiteRT 2.3, floor_div.cc EvalImpl; reference/floor_div.h FloorDiv.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.division.div import refuse_zero
from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.kernel import Array, Kernel
from tflq.numerics.rounding import floats_to_int32


def floor_divide(a: Array, b: Array) -> Array:
    """Through float64. Rounding: down. Overflow: int32 as x86 converts, narrower types refuse it."""
    refuse_zero("FloorDiv", b)
    quotient = np.floor(np.asarray(a.astype(np.float64) / b.astype(np.float64)))
    if a.dtype == np.float32:
        return quotient.astype(np.float32)
    if a.dtype != np.int32 and (quotient > np.iinfo(a.dtype).max).any():
        raise UndefinedResultError("FloorDiv", f"the lowest {a.dtype} divided by -1 does not fit its type")
    return floats_to_int32(quotient).astype(a.dtype)


#: Bytes for each element: both operands and their quotient as float64.
_SCRATCH = 24

KERNELS = tuple(
    Kernel("FLOOR_DIV", f"{t} {t} -> {t}", prepare_plain(floor_divide, _SCRATCH), (1, 3))
    for t in ("float32", "int32", "int16", "int8")
)
