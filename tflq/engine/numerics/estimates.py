"""Processors' estimates, subnormal numbers, narrow floats, multiply-adds.

Float32 without subnormal numbers, as processors compute that flush them to zero (x86: MXCSR's DAZ and FTZ).

a * b + c over float32 arrays: with two roundings, or fused with one.

Compilers for x86-64 keep the two apart; for AArch64 they contract them where the source writes them in one expression.

Roundings of float32 to narrower floats, whose values stay in float32.

Estimates of reciprocals as x86's RCPPS makes them: 12 bits, which differ between makers of processors.

The data names the processor it was read on; another processor has another file of the same form.

Inverse square roots and square roots of float32 from the processor's estimate, one Newton step later, as XNNPACK.

The estimate, of 14 bits, differs between makers of processors. `schemas/rsqrt_estimate.json` names the one on which it
was read: the package's other functions are the same on all of them.
Source: XNNPACK of August 2026, f32-vrsqrt/simd-rsqrt.c.in, f32-vsqrt/simd-rsqrt.c.in, as LiteRT 2.3's package has them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Real, compiled, writes
from tflq.engine.jit.flushing import TINY, multiply, multiply_add_once, power_of_two, read, subtract
from tflq.engine.jit.pieces import in_pieces
from tflq.model.ir.model import data_text
from tflq.typing import Array


def subnormals_as_zeros(x: Array) -> NDArray[np.float32]:
    """Return `x` (float32) with subnormals read as zeros of their sign."""
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x)


Floats = NDArray[np.float32]

#: a * b + c, elementwise, in float32.
MultiplyAdd = Callable[[Floats, Floats | np.float32, Floats | np.float32], Floats]


#: Elements up to which NumPy takes no longer, and nothing has to be compiled.
_SHORT = 256


def round_apart(a: Floats, b: Floats | np.float32, c: Floats | np.float32) -> Floats:
    """Return product and sum, each rounded to float32."""
    return np.asarray(a * b + c)


def fuse(a: Floats, b: Floats | np.float32, c: Floats | np.float32) -> Floats:
    """Return the exact a * b + c, rounded once to float32: fmaf.

    The float64 product of two float32 is exact. The sum is rounded to odd in float64, so that rounding it again to
    float32 gives what one rounding of the exact sum gives.
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
    if prod(shape) > _SHORT:
        out = np.empty(shape, np.float32)
        wide = (np.ascontiguousarray(np.broadcast_to(np.float32(x), shape)).reshape(-1) for x in (a, b, c))
        _fuse(*wide, out.reshape(-1))
        return out
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


@writes("out")
@in_pieces(2, a="r", b="r", c="r", out="r")
@compiled
def _fuse(a: Array, b: Array, c: Array, out: Array) -> None:
    """Fuse element by element. The caller guarantees: all are 1-D and of one size."""
    for i in range(out.size):
        out[i] = multiply_add_once(a[i], b[i], c[i])


def in_bfloat16(x: Array) -> Array:
    """Return float32 rounded to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.asarray(rounded.view(np.float32).reshape(np.shape(x)))


def in_float16(x: Array) -> Array:
    """Return float32 rounded to the nearest float16, ties to even."""
    return np.asarray(x).astype(np.float16).astype(np.float32)


def in_float32(x: Array) -> Array:
    """Return float32 as it is."""
    return np.asarray(x)


#: Roundings by the type's name.
NARROWED: Mapping[str, Callable[[Array], Array]] = {
    "float32": in_float32,
    "bfloat16": in_bfloat16,
    "float16": in_float16,
}


_INDEX_BITS = 12


@dataclass(frozen=True, slots=True, eq=False)
class ReciprocalEstimate:
    """One processor's table."""

    cpu: str
    mantissas: NDArray[np.int64]  # by the upper 12 bits of the fraction; (4096 + mantissa) / 8192 for x in [1, 2)

    @classmethod
    def read(cls, name: str) -> ReciprocalEstimate:
        """Read the table in a data file."""
        document = json.loads(data_text(name))
        steps = np.array([int(step) for step in "".join(document["steps"])])
        return cls(document["cpu"], document["first"] - np.cumsum(steps))

    def __call__(self, x: float) -> np.float32:
        """Return the estimate of 1 / x for a float32 x >= 1 with a finite result."""
        fraction, exponent = math.frexp(np.float32(x))
        index = int((2.0 * fraction - 1.0) * (1 << _INDEX_BITS))
        mantissa = int(self.mantissas[index]) + (1 << _INDEX_BITS)
        return np.float32(math.ldexp(mantissa, -_INDEX_BITS - exponent))


_DOCUMENT = json.loads(data_text("rsqrt_estimate.json"))
#: The processor of the estimate.
CPU = str(_DOCUMENT["cpu"])
#: By segment: 32 of [1, 2), then 32 of [2, 4).
_STARTS, _SLOPES = (np.array(_DOCUMENT[name], np.int64) for name in ("starts", "slopes"))


@compiled
def _estimate(x: Real) -> Real:
    """Return the estimate for a positive normal number. Source: vrsqrt14ps.

    This function guarantees: the number of the segment has 6 bits.
    """
    bits = np.int64(np.float32(x).view(np.uint32))
    exponent = (bits >> 23) - 127
    is_odd = exponent & 1
    if bits & 0x7FFFFF == 0 and is_odd == 0:
        return np.float32(power_of_two(-(exponent // 2)))
    segment = ((bits >> 18) & 31) + 32 * is_odd
    units = (128 * _STARTS[segment] - _SLOPES[segment] * ((bits >> 8) & 1023)) >> 9
    return np.float32(np.float64(units) * power_of_two(-17 - (exponent - is_odd) // 2))


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
