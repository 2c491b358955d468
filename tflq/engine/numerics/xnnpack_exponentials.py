"""LOGISTIC and ELU of float32 as XNNPACK computes them, on x86-64 with AVX2 and FMA3, and with AVX-512.

Each step is one operation of tflq/engine/numerics/normal_float32.py; every element is computed alike, wherever it lies.
Source: XNNPACK of August 2026, f32-vsigmoid/avx2-rr1-p5.c.in and avx512f-rr2-lut32-p2-perm2-scalef.c.in,
f32-velu/avx2-rr1-lut4-p4-perm.c.in and avx512f-rr1-p6.c.in.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.numerics.normal_float32 import add, divide, fma, larger, multiply, read, round, subtract


def _float32(*digits: str) -> tuple[float, ...]:
    """Return hexadecimal floats."""
    return tuple(float.fromhex(each) for each in digits)


#: 2**(i / 32), float32.
_TABLE_32 = tuple(float(np.float32(2.0 ** (i / 32))) for i in range(32))
#: Bits of 2**(i / 4) with i / 4 subtracted from the exponent.
_TABLE_4 = (0x3F800000, 0x3F7837F0, 0x3F7504F3, 0x3F7744FD)
_LOG2E, _LN2 = _float32("0x1.715476p0", "0x1.62E430p-1")
_MAGIC_32 = 1.5 * 2.0**18
_LN2_LOW, _C1_32 = _float32("0x1.05C61p-29", "0x1.0000F6p-0")
_MAGIC_127 = float.fromhex("0x1.8000FEp23")
_DENORMAL_CUTOFF = float.fromhex("-0x1.5D589Ep+6")
_S5, _S4, _S3, _S2, _S1 = _float32("0x1.0F9F9Cp-7", "0x1.573A1Ap-5", "0x1.555A80p-3", "0x1.FFFDC6p-2", "0x1.FFFFF6p-1")
_SATURATED = float.fromhex("-0x1.154246p+4")
_E6, _E5, _E4, _E3, _E2 = _float32("0x1.6B7338p-10", "0x1.12278Ep-7", "0x1.555716p-5", "0x1.5554B0p-3", "0x1.FFFFFEp-2")
_MAGIC_4 = 1.5 * 2.0**21
_L4, _L3, _L2 = _float32("0x1.554F9Ap-5", "0x1.557082p-3", "0x1.000002p-1")


@compiled
def logistic_avx2(value: Real) -> Real:
    """Return 1 / (1 + exp(-x)): a polynomial of degree 5; results that would be subnormal are 0."""
    z = -abs(read(value))
    n = fma(z, np.float32(_LOG2E), np.float32(_MAGIC_127))
    s = np.uint32(np.float32(n).view(np.uint32) << np.uint32(23)).view(np.float32)
    t = fma(subtract(n, np.float32(_MAGIC_127)), np.float32(-_LN2), z)
    p = fma(np.float32(_S5), t, np.float32(_S4))
    p = fma(p, t, np.float32(_S3))
    p = fma(p, t, np.float32(_S2))
    p = fma(p, t, np.float32(_S1))
    e = fma(multiply(t, s), p, s)
    f = divide(e, add(e, np.float32(1)))
    if z < np.float32(_DENORMAL_CUTOFF):
        f = np.float32(0)
    return f if np.signbit(value) else subtract(np.float32(1), f)


@compiled
def logistic_avx512(value: Real) -> Real:
    """Return 1 / (1 + exp(-x)): a table of 32 powers of two and a polynomial of degree 2.

    This function guarantees: the position in the table has 5 bits.
    """
    z = -abs(read(value))
    shifted = fma(z, np.float32(_LOG2E), np.float32(_MAGIC_32))
    power = np.float32(_TABLE_32[np.int64(np.float32(shifted).view(np.uint32)) & 31])
    n = subtract(shifted, np.float32(_MAGIC_32))
    t = fma(n, np.float32(_LN2_LOW), fma(n, np.float32(-_LN2), z))
    p = fma(t, np.float32(0.5), np.float32(_C1_32))
    p = fma(multiply(t, power), p, power)
    e = _times_power_of_two(p, n)
    f = divide(e, add(e, np.float32(1)))
    return f if np.signbit(value) else subtract(np.float32(1), f)


@compiled
def _times_power_of_two(x: Real, n: Real) -> Real:
    """Return x * 2**floor(n) for n that is not positive. Source: vscalefps."""
    if n == np.float32(-np.inf):
        return np.float32(0)
    if n != n:
        return n
    return round(math.ldexp(np.float64(x), int(np.floor(max(n, np.float32(-1000))))))


@compiled
def elu_avx512(value: Real) -> Real:
    """Return x, or exp(x) - 1 below 0: a polynomial of degree 6."""
    x = read(value)
    if not x < np.float32(0):
        return x
    z = larger(np.float32(_SATURATED), x)
    n = fma(z, np.float32(_LOG2E), np.float32(_MAGIC_127))
    s = np.uint32(np.float32(n).view(np.uint32) << np.uint32(23)).view(np.float32)
    t = fma(subtract(n, np.float32(_MAGIC_127)), np.float32(-_LN2), z)
    p = fma(np.float32(_E6), t, np.float32(_E5))
    p = fma(p, t, np.float32(_E4))
    p = fma(p, t, np.float32(_E3))
    p = multiply(fma(p, t, np.float32(_E2)), t)
    return _combine(p, t, s)


@compiled
def elu_avx2(value: Real) -> Real:
    """Return x, or exp(x) - 1 below 0: a table of 4 powers of two and a polynomial of degree 4.

    This function guarantees: the position in the table has 2 bits.
    """
    x = read(value)
    if not np.signbit(x):
        return x
    z = larger(np.float32(_SATURATED), x)
    n = fma(z, np.float32(_LOG2E), np.float32(_MAGIC_4))
    bits = np.int64(np.float32(n).view(np.uint32))
    s = np.uint32(((bits << 21) + _TABLE_4[bits & 3]) & 0xFFFFFFFF).view(np.float32)
    t = fma(subtract(n, np.float32(_MAGIC_4)), np.float32(-_LN2), z)
    p = fma(np.float32(_L4), t, np.float32(_L3))
    p = multiply(fma(p, t, np.float32(_L2)), t)
    return _combine(p, t, s)


@compiled
def _combine(p: Real, t: Real, s: Real) -> Real:
    """Return s * (1 + t + p * t) - 1."""
    t = multiply(t, s)
    return add(fma(p, t, t), subtract(s, np.float32(1)))
