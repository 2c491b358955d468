"""Single float32 operations without subnormal numbers, as vector code of XNNPACK computes them.

Each rounds once, half to even; a result that would be subnormal becomes a zero of its sign. Operands are float32 that
are not subnormal. Minimum and maximum return their second operand if one is NaN, or if both are equal, as x86 does.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.numerics.flushing import ROUNDS_TO_TINY, TINY
from tflq.engine.numerics.multiply_add import product_and_sum_to_odd


@compiled
def read(x: Real) -> Real:
    """Return `x`, a subnormal as a zero of its sign."""
    return np.copysign(np.float32(0), x) if abs(x) < np.float32(TINY) else x


@compiled
def round(x: Real) -> Real:
    """Round a float64 that has at least one bit more than the result needs."""
    return np.float32(np.copysign(0.0, x)) if abs(x) < ROUNDS_TO_TINY else np.float32(x)


@compiled
def add(a: Real, b: Real) -> Real:
    """Return a + b."""
    return round(np.float64(a) + np.float64(b))


@compiled
def subtract(a: Real, b: Real) -> Real:
    """Return a - b."""
    return round(np.float64(a) - np.float64(b))


@compiled
def multiply(a: Real, b: Real) -> Real:
    """Return a * b."""
    return round(np.float64(a) * np.float64(b))


@compiled
def divide(a: Real, b: Real) -> Real:
    """Return a / b."""
    return round(np.float64(a) / np.float64(b))


@compiled
def fma(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c, rounded once."""
    return round(product_and_sum_to_odd(a, b, c))


@compiled
def smaller(a: Real, b: Real) -> Real:
    """Return the minimum."""
    return a if a < b else b


@compiled
def larger(a: Real, b: Real) -> Real:
    """Return the maximum."""
    return a if a > b else b
