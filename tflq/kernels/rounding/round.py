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

from tflq.kernels.exactness import EXACT
from tflq.kernels.families.narrow_floats import narrow_floats
from tflq.kernels.kernel import Array


def nearest(x: Array) -> Array:
    """Source: RoundToNearest, in float32. Rounding: half to even."""
    below = np.floor(x)
    with np.errstate(invalid="ignore"):  # infinities give NaN, which is neither below nor at a half
        over = x - below
    stays = (over < 0.5) | ((over == 0.5) & (np.fmod(below, 2) == 0))
    return np.where(stays, below, below + np.float32(1))


KERNELS = narrow_floats("ROUND", nearest, (1, 1), EXACT)
