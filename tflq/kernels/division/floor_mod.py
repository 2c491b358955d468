"""FLOOR_MOD: y = a - floor(a / b) * b, with the sign of b.

| operand | shape             | types                              |
|---------|-------------------|------------------------------------|
| a, b    | any, broadcasting | float32, int64, int32, int16, int8 |
| y       | broadcast         | as a                               |

Quantization takes no part. Integer division by zero raises when run, as the source's Eval returns an error.
Source: LiteRT 2.3, floor_mod.cc EvalImpl; reference/floor_mod.h FloorMod.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.division.div import refuse_zero
from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.kernel import Array, Kernel


def floor_mod_integer(a: Array, b: Array) -> Array:
    """The lowest int32 or int64 by -1 traps in the source, and raises here."""
    refuse_zero("FloorMod", b)
    if a.dtype.itemsize >= 4 and (b == -1).any() and ((a == np.iinfo(a.dtype).min) & (b == -1)).any():
        raise UndefinedResultError("FloorMod", "integer overflow: the lowest value divided by -1")
    return np.asarray(np.mod(a, b))


def floor_mod_float(a: Array, b: Array) -> Array:
    """fmod, exact; the divisor is added where the signs differ, rounded once."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


KERNELS = (
    Kernel("FLOOR_MOD", "float32 float32 -> float32", prepare_plain(floor_mod_float), (1, 2)),
    *(
        Kernel("FLOOR_MOD", f"{t} {t} -> {t}", prepare_plain(floor_mod_integer), (1, 2))
        for t in ("int64", "int32", "int16", "int8")
    ),
)
