"""Functions of one float32 as XNNPACK computes them on x86-64, over arrays.

LOGISTIC and ELU of float32 as XNNPACK computes them, on x86-64 with AVX2 and FMA3, and with AVX-512.

Each step is one operation of tflq/engine/jit/flushing.py; every element is computed alike, wherever it lies.
Source: XNNPACK of August 2026, f32-vsigmoid/avx2-rr1-p5.c.in and avx512f-rr2-lut32-p2-perm2-scalef.c.in,
f32-velu/avx2-rr1-lut4-p4-perm.c.in and avx512f-rr1-p6.c.in.

Functions of float32 that XNNPACK computes by quotients of polynomials, on x86-64 with FMA3 or AVX-512.

Each step is one operation of tflq/engine/jit/flushing.py; every element is computed alike, wherever it lies.
Source: XNNPACK of August 2026, f32-vexp/rational-3-2.c.in, f32-vtanh/rational-9-8.c.in, f32-vgelu and
f32-vapproxgelu/rational-12-10.c.in, f32-vlog/rational-3-3.c.in, f32-vsin/rational-5-4.c.in, f32-vhswish/simd.c.in.

What depends on the processor's vector extension is in `Functions`.
Source: XNNPACK of August 2026, configs/unary-elementwise-config.c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.flushing import (
    add,
    begin_flushing,
    divide,
    end_flushing,
    larger,
    multiply,
    multiply_add,
    power_of_two,
    read,
    round,
    smaller,
    subtract,
)
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics import estimates
from tflq.engine.numerics.libm import Elementwise, of_element
from tflq.typing import Array


def _float32(*digits: str) -> tuple[float, ...]:
    """Return hexadecimal floats."""
    return tuple(float.fromhex(each) for each in digits)


#: 2**(i / 32), float32.
_TABLE_32 = (2.0 ** (np.arange(32) / 32)).astype(np.float32)
#: Bits of 2**(i / 4) with i / 4 subtracted from the exponent.
_TABLE_4 = np.array((0x3F800000, 0x3F7837F0, 0x3F7504F3, 0x3F7744FD))
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
    n = multiply_add(z, np.float32(_LOG2E), np.float32(_MAGIC_127))
    s = np.uint32(np.float32(n).view(np.uint32) << np.uint32(23)).view(np.float32)
    t = multiply_add(subtract(n, np.float32(_MAGIC_127)), np.float32(-_LN2), z)
    p = multiply_add(np.float32(_S5), t, np.float32(_S4))
    p = multiply_add(p, t, np.float32(_S3))
    p = multiply_add(p, t, np.float32(_S2))
    p = multiply_add(p, t, np.float32(_S1))
    e = multiply_add(multiply(t, s), p, s)
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
    shifted = multiply_add(z, np.float32(_LOG2E), np.float32(_MAGIC_32))
    power = _TABLE_32[np.float32(shifted).view(np.uint32) & np.uint32(31)]
    n = subtract(shifted, np.float32(_MAGIC_32))
    t = multiply_add(n, np.float32(_LN2_LOW), multiply_add(n, np.float32(-_LN2), z))
    p = multiply_add(t, np.float32(0.5), np.float32(_C1_32))
    p = multiply_add(multiply(t, power), p, power)
    e = _times_power_of_two(p, n)
    f = divide(e, add(e, np.float32(1)))
    return f if np.signbit(value) else subtract(np.float32(1), f)


@compiled
def _times_power_of_two(x: Real, n: Real) -> Real:
    """Return x * 2**floor(n) for n that is not positive. Source: vscalefps."""
    power = power_of_two(np.int64(np.floor(larger(n, np.float32(-1000)))))
    scaled = np.float32(0) if n == np.float32(-np.inf) else round(np.float64(x) * power)
    return n if n != n else scaled


@compiled
def elu_avx512(value: Real) -> Real:
    """Return x, or exp(x) - 1 below 0: a polynomial of degree 6."""
    x = read(value)
    if not x < np.float32(0):
        return x
    z = larger(np.float32(_SATURATED), x)
    n = multiply_add(z, np.float32(_LOG2E), np.float32(_MAGIC_127))
    s = np.uint32(np.float32(n).view(np.uint32) << np.uint32(23)).view(np.float32)
    t = multiply_add(subtract(n, np.float32(_MAGIC_127)), np.float32(-_LN2), z)
    p = multiply_add(np.float32(_E6), t, np.float32(_E5))
    p = multiply_add(p, t, np.float32(_E4))
    p = multiply_add(p, t, np.float32(_E3))
    p = multiply(multiply_add(p, t, np.float32(_E2)), t)
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
    n = multiply_add(z, np.float32(_LOG2E), np.float32(_MAGIC_4))
    bits = np.int64(np.float32(n).view(np.uint32))
    s = np.uint32(((bits << 21) + _TABLE_4[bits & 3]) & 0xFFFFFFFF).view(np.float32)
    t = multiply_add(subtract(n, np.float32(_MAGIC_4)), np.float32(-_LN2), z)
    p = multiply_add(np.float32(_L4), t, np.float32(_L3))
    p = multiply(multiply_add(p, t, np.float32(_L2)), t)
    return _combine(p, t, s)


@compiled
def _combine(p: Real, t: Real, s: Real) -> Real:
    """Return s * (1 + t + p * t) - 1."""
    t = multiply(t, s)
    return add(multiply_add(p, t, t), subtract(s, np.float32(1)))


@compiled
def _binary_logarithm(value: Real) -> Real:
    """Return x log2(e), held in [-127, 128]; NaN gives -127."""
    scaled = multiply(read(value), np.float32(1.44269504089))
    return smaller(larger(scaled, np.float32(-127)), np.float32(128))


@compiled
def _whole_part(scaled: Real) -> Real:
    """Return the whole number that is nearest."""
    return (np.float32(12582912) + scaled) - np.float32(12582912)


@compiled
def _narrow_power_of_two(whole: Real) -> Real:
    """Return 2**whole: infinity for 128, 0 for -127."""
    return np.uint32(np.float32(whole + np.float32(8388735)).view(np.uint32) << np.uint32(23)).view(np.float32)


@compiled
def exp(value: Real) -> Real:
    """Return exp(x) by 2**r - 1, with the coefficients of LiteRT 2.3's packages."""
    scaled = _binary_logarithm(value)
    whole = _whole_part(scaled)
    r = subtract(scaled, whole)
    p = multiply_add(r, np.float32(0.005537563469260931), np.float32(0.04807804152369499))
    p = multiply(r, multiply_add(r, p, np.float32(0.6931471824645996)))
    q = multiply_add(r, np.float32(0.023987604305148125), np.float32(-0.27721086144447327))
    q = multiply_add(r, q, np.float32(1))
    return multiply(add(divide(p, q), np.float32(1)), _narrow_power_of_two(whole))


@compiled
def exp_2_2(value: Real) -> Real:
    """Return exp(x) by 2**r, as LiteRT 1.4 to 2.2. Source: XNNPACK of July 2025, f32-vexp/rational-3-2.c.in."""
    scaled = _binary_logarithm(value)
    whole = _whole_part(scaled)
    r = subtract(scaled, whole)
    p = multiply_add(r, np.float32(5.5380910635e-03), np.float32(7.2068706155e-02))
    p = multiply_add(r, multiply_add(r, p, np.float32(4.1594290733e-01)), np.float32(1))
    q = multiply_add(r, np.float32(2.3986088112e-02), np.float32(-2.7720427513e-01))
    q = multiply_add(r, q, np.float32(1))
    return multiply(divide(p, q), _narrow_power_of_two(whole))


@compiled
def tanh(value: Real) -> Real:
    """Return tanh(x)."""
    limit = np.float32(7.9807181358)
    x = larger(-limit, smaller(limit, read(value)))
    x2 = multiply(x, x)
    p = multiply_add(x2, np.float32(1.4248920266e-08), np.float32(2.1235626264e-05))
    p = multiply_add(x2, p, np.float32(3.5330520477e-03))
    p = multiply_add(x2, p, np.float32(1.3412411511e-01))
    p = multiply_add(x2, p, np.float32(1))
    q = multiply_add(x2, np.float32(8.1365948290e-07), np.float32(3.3472978976e-04))
    q = multiply_add(x2, q, np.float32(2.6018999517e-02))
    q = multiply_add(x2, q, np.float32(4.6745735407e-01))
    q = multiply_add(x2, q, np.float32(1))
    return divide(multiply(x, p), q)


@compiled
def gelu(value: Real) -> Real:
    """Return x/2 * (1 + erf(x / sqrt(2)))."""
    limit = np.float32(5.1638283730)
    original = read(value)
    x = larger(-limit, smaller(limit, original))
    x2 = multiply(x, x)
    p = multiply_add(x2, np.float32(4.5835321316e-08), np.float32(1.2609783880e-05))
    p = multiply_add(x2, p, np.float32(3.2973114867e-04))
    p = multiply_add(x2, p, np.float32(9.3065137044e-03))
    p = multiply_add(x2, p, np.float32(6.6972173750e-02))
    p = multiply_add(x2, p, np.float32(7.9788452387e-01))
    q = multiply_add(x2, np.float32(1.1988805682e-06), np.float32(7.2267655923e-05))
    q = multiply_add(x2, q, np.float32(1.8622842617e-03))
    q = multiply_add(x2, q, np.float32(2.8431978077e-02))
    q = multiply_add(x2, q, np.float32(2.5060352683e-01))
    q = multiply_add(x2, q, np.float32(1))
    return multiply(multiply(original, np.float32(0.5)), add(divide(multiply(x, p), q), np.float32(1)))


@compiled
def gelu_approximate(value: Real) -> Real:
    """Return x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3)))."""
    limit = np.float32(4.84974098)
    original = read(value)
    x = larger(-limit, smaller(limit, original))
    x2 = multiply(x, x)
    p = multiply_add(x2, np.float32(4.9544411240e-08), np.float32(1.4302649106e-05))
    p = multiply_add(x2, p, np.float32(2.6887017884e-04))
    p = multiply_add(x2, p, np.float32(7.2898347862e-03))
    p = multiply_add(x2, p, np.float32(6.0803253204e-02))
    p = multiply_add(x2, p, np.float32(7.9788458347e-01))
    q = multiply_add(x2, np.float32(1.3433452750e-06), np.float32(7.6477612311e-05))
    q = multiply_add(x2, q, np.float32(1.3060354395e-03))
    q = multiply_add(x2, q, np.float32(2.4381054565e-02))
    q = multiply_add(x2, q, np.float32(2.4369759858e-01))
    q = multiply_add(x2, q, np.float32(1))
    return multiply(multiply(original, np.float32(0.5)), add(divide(multiply(x, p), q), np.float32(1)))


@compiled
def log_avx512(value: Real) -> Real:
    """Return log(x): minus infinity for zeros, NaN below."""
    x = multiply(read(value), np.float32(1.4142134190))
    if x != x or x < np.float32(0):
        return np.float32(np.nan)
    if x == np.float32(0):
        return np.float32(-np.inf)
    bits = np.int64(np.float32(x).view(np.uint32))
    return _log_of_parts(np.float32(np.inf) if x == np.float32(np.inf) else np.float32((bits >> 23) - 127), bits)


@compiled
def log_fma3(value: Real) -> Real:
    """Return log(x): minus infinity for zeros, NaN below; infinity and positive NaN count as numbers beyond 2**128."""
    x = multiply(read(value), np.float32(1.4142134190))
    if x == np.float32(0):
        return np.float32(-np.inf)
    bits = np.int64(np.float32(x).view(np.uint32))
    return np.float32(np.nan) if bits >> 31 else _log_of_parts(np.float32((bits >> 23) - 127), bits)


@compiled
def _log_of_parts(exponent: Real, bits: Int) -> Real:
    """Return the logarithm for an exponent and bits whose mantissa counts, both of x * sqrt(2)."""
    mantissa = np.uint32((bits & 0x7FFFFF) | 0x3F800000).view(np.float32)
    r = subtract(multiply(mantissa, np.float32(7.0710688829e-01)), np.float32(1))
    p = multiply_add(r, np.float32(1.824996918440e-01), np.float32(1))
    p = multiply(r, multiply_add(r, p, np.float32(1)))
    q = multiply_add(r, np.float32(0.049584995955), np.float32(0.599170029163))
    q = multiply_add(r, q, np.float32(1.5))
    q = multiply_add(r, q, np.float32(1))
    return multiply_add(exponent, np.float32(0.69314718055994531), divide(p, q))


@compiled
def _reduced_sine(x: Real) -> Real:
    """Return the sine of a value that lies near [-pi, 3/2 pi]: it is mirrored into [-pi/2, pi/2]."""
    pi = np.float32(3.1415927)
    x = smaller(x, subtract(pi, x))
    x = larger(x, subtract(-pi, x))
    x = smaller(x, subtract(pi, x))
    x2 = multiply(x, x)
    p = multiply_add(x2, np.float32(3.2340581529e-03), np.float32(-1.3314664364e-01))
    p = multiply(x, multiply_add(x2, p, np.float32(1)))
    q = multiply_add(x2, np.float32(4.8770775902e-04), np.float32(3.3519912511e-02))
    return divide(p, multiply_add(x2, q, np.float32(1)))


@compiled
def _whole_turns_less(x: Real) -> Real:
    """Return x less the multiple of 2 pi that is nearest."""
    turns = np.float32(np.rint(multiply(x, np.float32(0.15915494))))
    return multiply_add(-turns, np.float32(1.9353072e-3), multiply_add(-turns, np.float32(6.28125), x))


@compiled
def sin(value: Real) -> Real:
    """Return sin(x)."""
    return _reduced_sine(_whole_turns_less(read(value)))


@compiled
def cos(value: Real) -> Real:
    """Return cos(x): the sine of pi/2 - x."""
    x = _whole_turns_less(read(value))
    return _reduced_sine(add(subtract(np.float32(1.5707963705), x), np.float32(-4.3711388e-08)))


@compiled
def cos_2_2(value: Real) -> Real:
    """Return cos(x) as LiteRT 1.4 to 2.2: pi/2 is one number.

    Source: XNNPACK of July 2025, f32-vsin/rational-5-4.c.in.
    """
    return _reduced_sine(subtract(np.float32(1.5707964), _whole_turns_less(read(value))))


@compiled
def hard_swish(value: Real) -> Real:
    """Return x * min(1, max(0, x / 6 + 1/2))."""
    x = read(value)
    gate = multiply_add(x, np.float32(0.16666667163372040), np.float32(0.5))
    return multiply(smaller(larger(gate, np.float32(0)), np.float32(1)), x)


@writes("out")
@compiled
def _over(x: Array, out: Array) -> None:
    """Fill `out` with the function of `x`. The caller guarantees: both have the same size."""
    before = begin_flushing()
    for i in range(x.size):
        out[i] = of_element(x[i])
    end_flushing(before)


def _function(element: Compiled[..., Real]) -> Elementwise:
    return Elementwise(in_pieces(32, x="r", out="r")(_over.bind(of_element=element)))


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Functions whose steps depend on the vector extension. Roots are None if the processor's estimate is unknown."""

    logistic: Elementwise
    elu: Elementwise
    log: Elementwise
    rsqrt: Elementwise | None = None
    sqrt: Elementwise | None = None


EXP = _function(exp)
EXP_2_2 = _function(exp_2_2)
TANH = _function(tanh)
GELU = _function(gelu)
GELU_APPROXIMATE = _function(gelu_approximate)
SIN = _function(sin)
COS = _function(cos)
COS_2_2 = _function(cos_2_2)
HARD_SWISH = _function(hard_swish)

#: With AVX2 and FMA3.
AVX2 = Functions(_function(logistic_avx2), _function(elu_avx2), _function(log_fma3))
#: With AVX-512.
AVX512 = Functions(
    _function(logistic_avx512),
    _function(elu_avx512),
    _function(log_avx512),
    _function(estimates.rsqrt),
    _function(estimates.sqrt),
)
