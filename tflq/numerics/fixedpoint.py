"""gemmlowp's fixed-point arithmetic on raw integers.

Source: gemmlowp fixedpoint/fixedpoint.h (the pins of TensorFlow r1.15 and of LiteRT 2.3 agree). A raw value r with b
integer bits in a w-bit word stands for r / 2**(w - 1 - b). Derivations: docs/numerics.md.
"""

from __future__ import annotations

import numpy as np

from tflq.numerics.compiled import Int, compiled
from tflq.numerics.rounding import INT32_MAX, INT32_MIN, divide_by_pot_half_away


@compiled
def saturating_rounding_doubling_high_mul(a: Int, b: Int) -> Int:
    """High half of 2*a*b for int32 `a`, `b`: floor((a*b + 2**30) / 2**31), ties towards plus infinity.

    gemmlowp writes a sign-dependent nudge and a truncating division, which together round half up. The one
    overflow, both operands INT32_MIN, saturates to INT32_MAX.
    """
    if a == INT32_MIN and b == INT32_MIN:
        return np.int64(INT32_MAX)
    return (np.int64(a) * np.int64(b) + np.int64(1 << 30)) >> np.int64(31)


@compiled
def rounding_divide_by_pot(x: Int, exponent: Int) -> Int:
    """x / 2**exponent, ties away from zero."""
    return divide_by_pot_half_away(x, exponent)
