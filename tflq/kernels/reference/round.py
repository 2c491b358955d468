"""ROUND: y = the nearest integer, half to even.

| operand | shape | types                      |
|---------|-------|----------------------------|
| x       | any   | float32, float16, bfloat16 |
| y       | as x  | as x                       |

Numbers in [-1/2, 0) give +0, as the source adds 1 to their floor.
Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, round.cc; reference/round.h RoundToNearest.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel
from tflq.kernels.reference.cast import from_bfloat16, to_bfloat16
from tflq.kernels.unary import prepare_function


def eval_round(x: Array) -> Array:
    """Source: RoundToNearest, in float32. Rounding: half to even."""
    value = x.astype(np.float32, copy=False)
    below = np.floor(value)
    with np.errstate(invalid="ignore"):  # infinities give NaN, which is neither below nor at a half
        over = value - below
    stays = (over < 0.5) | ((over == 0.5) & (np.fmod(below, 2) == 0))
    return np.where(stays, below, below + np.float32(1)).astype(x.dtype, copy=False)


def eval_bfloat16(bits: Array) -> Array:
    """The same on bfloat16, which float32 holds."""
    return to_bfloat16(eval_round(from_bfloat16(bits))).reshape(bits.shape)


KERNELS = (
    *(Kernel("ROUND", f"{t} -> {t}", prepare_function(eval_round), (1, 1)) for t in ("float32", "float16")),
    Kernel("ROUND", "bfloat16 -> bfloat16", prepare_function(eval_bfloat16), (1, 1)),
)
