"""Float32 without subnormal numbers, as processors compute that flush them to zero (x86: MXCSR's DAZ and FTZ)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.typing import Array

#: The smallest normal number, 2**-126.
TINY = float(np.finfo(np.float32).tiny)
#: The smallest value that 24 bits without a lowest exponent round up to it: 2**-126 - 2**-151.
ROUNDS_TO_TINY = TINY - 2.0**-151


def subnormals_as_zeros(x: Array) -> NDArray[np.float32]:
    """Return `x` (float32) with subnormals read as zeros of their sign."""
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x)


def to_normal_float32(x: Array) -> NDArray[np.float32]:
    """Round `x` (float64) half to even to float32; results that would be subnormal become zeros of their sign.

    Sums, products and quotients of float32 may be rounded to float64 first: rounding twice gives the same.
    """
    return np.where(np.abs(x) < ROUNDS_TO_TINY, np.copysign(np.float32(0), x), x).astype(np.float32)
