"""Leading bits of integers.

Source: LiteRT 2.3 tflite/kernels/internal/common.h, CountLeadingZeros, CountLeadingSignBits, FloorLog2.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled


@compiled
def count_leading_zeros(x: Int, width: Int) -> Int:
    """Count the zero bits above the highest set bit of an unsigned `x` of `width` bits (at most 63); `width` for 0."""
    rest, count = np.int64(x), np.int64(width)
    while rest > 0:
        rest >>= np.int64(1)
        count -= np.int64(1)
    return count


@compiled
def count_leading_sign_bits(x: Int, width: Int) -> Int:
    """Count the copies of the sign bit below the sign bit itself, for a signed `x` of `width` bits; width - 1 for 0 and
    -1.
    """
    magnitude = np.int64(x) if x >= 0 else ~np.int64(x)
    return count_leading_zeros(magnitude, width) - np.int64(1)


@compiled
def floor_log2(x: Int) -> Int:
    """Return the exponent of the highest set bit of `x` > 0."""
    return np.int64(62) - count_leading_zeros(x, 63)
