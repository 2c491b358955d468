"""Inverse square roots and square roots of float32 from the processor's estimate, one Newton step later, as XNNPACK.

The estimate, of 14 bits, differs between makers of processors. `schemas/rsqrt_estimate.json` names the one on which it
was read: the package's other functions are the same on all of them.
Source: XNNPACK of August 2026, f32-vrsqrt/simd-rsqrt.c.in, f32-vsqrt/simd-rsqrt.c.in, as LiteRT 2.3's package has them.
"""

from __future__ import annotations

import json
import math

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.numerics.normal_float32 import multiply, read, subtract
from tflq.model.ir.schema import data_text

_DOCUMENT = json.loads(data_text("rsqrt_estimate.json"))
#: The processor of the estimate.
CPU = str(_DOCUMENT["cpu"])
#: By segment: 32 of [1, 2), then 32 of [2, 4).
_STARTS, _SLOPES = (tuple(map(int, _DOCUMENT[name])) for name in ("starts", "slopes"))


@compiled
def _estimate(x: Real) -> Real:
    """Return the estimate for a positive normal number. Source: vrsqrt14ps.

    This function guarantees: the number of the segment has 6 bits.
    """
    bits = np.int64(np.float32(x).view(np.uint32))
    exponent = (bits >> 23) - 127
    is_odd = exponent & 1
    if bits & 0x7FFFFF == 0 and is_odd == 0:
        return np.float32(math.ldexp(1.0, int(-(exponent // 2))))
    segment = ((bits >> 18) & 31) + 32 * is_odd
    units = (128 * _STARTS[segment] - _SLOPES[segment] * ((bits >> 8) & 1023)) >> 9
    return np.float32(math.ldexp(np.float64(units), int(-17 - (exponent - is_odd) // 2)))


@compiled
def _refine(x: Real) -> Real:
    """Return the estimate after one Newton step, no two operations fused."""
    estimate = _estimate(x)
    error = subtract(multiply(x, multiply(estimate, estimate)), np.float32(1))
    return subtract(estimate, multiply(error, multiply(np.float32(0.5), estimate)))


@compiled
def rsqrt(value: Real) -> Real:
    """Return 1 / sqrt(x): NaN for zeros and below, 0 for infinity."""
    x = read(value)
    if not x > np.float32(0):
        return np.float32(np.nan)
    return np.float32(0) if x == np.float32(np.inf) else _refine(x)


@compiled
def sqrt(value: Real) -> Real:
    """Return x / sqrt(x): zeros as they are, NaN below, infinity for infinity."""
    x = read(value)
    if x == np.float32(0) or x == np.float32(np.inf):
        return x
    return multiply(x, _refine(x)) if x > np.float32(0) else np.float32(np.nan)
