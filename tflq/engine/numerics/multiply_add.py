"""a * b + c over float32 arrays: with two roundings, or fused with one.

Compilers for x86-64 keep the two apart; for AArch64 they contract them where the source writes them in one expression.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Real, compiled

Floats = NDArray[np.float32]

#: a * b + c, elementwise, in float32.
MultiplyAdd = Callable[[Floats, Floats | np.float32, Floats | np.float32], Floats]


def round_apart(a: Floats, b: Floats | np.float32, c: Floats | np.float32) -> Floats:
    """Return product and sum, each rounded to float32."""
    return np.asarray(a * b + c)


def fuse(a: Floats, b: Floats | np.float32, c: Floats | np.float32) -> Floats:
    """Return the exact a * b + c, rounded once to float32: fmaf.

    The float64 product of two float32 is exact. The sum is rounded to odd in float64, so that rounding it again to
    float32 gives what one rounding of the exact sum gives.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        return np.asarray(sum_to_odd(product, np.asarray(c, np.float64)).astype(np.float32))


def sum_to_odd(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a + b in float64; if that is not exact, the neighbour of the exact sum with an odd mantissa.

    The rounding error is known exactly. Source: Knuth's TwoSum; Boldo and Melquiond, Emulation of FMA.
    """
    total = np.atleast_1d(a + b)
    second = total - a
    lost = (a - (total - second)) + (b - second)
    bits = total.view(np.int64)
    is_even = (bits & 1) == 0
    is_rounded = np.isfinite(total) & (lost != 0)
    away_from_zero = (lost > 0) == (total > 0)
    odd = bits + np.where(is_rounded & is_even, np.where(away_from_zero, 1, -1), 0)
    return np.asarray(odd.view(np.float64)).reshape(np.broadcast_shapes(a.shape, b.shape))


@compiled
def multiply_add_once(a: Real, b: Real, c: Real) -> Real:
    """Return `fused` of three float32."""
    return np.float32(product_and_sum_to_odd(a, b, c))


@compiled
def product_and_sum_to_odd(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c of three float32 in float64, rounded to odd: see `sum_to_odd`."""
    product = np.float64(a) * np.float64(b)
    total = product + np.float64(c)
    second = total - product
    lost = (product - (total - second)) + (np.float64(c) - second)
    if lost != 0 and np.isfinite(total):
        bits = np.float64(total).view(np.int64)
        if bits & 1 == 0:
            bits += 1 if (lost > 0) == (total > 0) else -1
            total = np.int64(bits).view(np.float64)
    return total
