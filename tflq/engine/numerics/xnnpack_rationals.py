"""Functions of float32 that XNNPACK computes by quotients of polynomials, on x86-64 with FMA3 or AVX-512.

Each step is one operation of tflq/engine/numerics/normal_float32.py; every element is computed alike, wherever it lies.
Source: XNNPACK of August 2026, f32-vexp/rational-3-2.c.in, f32-vtanh/rational-9-8.c.in, f32-vgelu and
f32-vapproxgelu/rational-12-10.c.in, f32-vlog/rational-3-3.c.in, f32-vsin/rational-5-4.c.in, f32-vhswish/simd.c.in.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.numerics.normal_float32 import add, divide, fma, larger, multiply, read, smaller, subtract


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
def _power_of_two(whole: Real) -> Real:
    """Return 2**whole: infinity for 128, 0 for -127."""
    return np.uint32(np.float32(whole + np.float32(8388735)).view(np.uint32) << np.uint32(23)).view(np.float32)


@compiled
def exp(value: Real) -> Real:
    """Return exp(x) by 2**r - 1, with the coefficients of LiteRT 2.3's packages."""
    scaled = _binary_logarithm(value)
    whole = _whole_part(scaled)
    r = subtract(scaled, whole)
    p = fma(r, np.float32(0.005537563469260931), np.float32(0.04807804152369499))
    p = multiply(r, fma(r, p, np.float32(0.6931471824645996)))
    q = fma(r, np.float32(0.023987604305148125), np.float32(-0.27721086144447327))
    q = fma(r, q, np.float32(1))
    return multiply(add(divide(p, q), np.float32(1)), _power_of_two(whole))


@compiled
def exp_2_2(value: Real) -> Real:
    """Return exp(x) by 2**r, as LiteRT 1.4 to 2.2. Source: XNNPACK of July 2025, f32-vexp/rational-3-2.c.in."""
    scaled = _binary_logarithm(value)
    whole = _whole_part(scaled)
    r = subtract(scaled, whole)
    p = fma(r, np.float32(5.5380910635e-03), np.float32(7.2068706155e-02))
    p = fma(r, fma(r, p, np.float32(4.1594290733e-01)), np.float32(1))
    q = fma(r, np.float32(2.3986088112e-02), np.float32(-2.7720427513e-01))
    q = fma(r, q, np.float32(1))
    return multiply(divide(p, q), _power_of_two(whole))


@compiled
def tanh(value: Real) -> Real:
    """Return tanh(x)."""
    limit = np.float32(7.9807181358)
    x = larger(-limit, smaller(limit, read(value)))
    x2 = multiply(x, x)
    p = fma(x2, np.float32(1.4248920266e-08), np.float32(2.1235626264e-05))
    p = fma(x2, p, np.float32(3.5330520477e-03))
    p = fma(x2, p, np.float32(1.3412411511e-01))
    p = fma(x2, p, np.float32(1))
    q = fma(x2, np.float32(8.1365948290e-07), np.float32(3.3472978976e-04))
    q = fma(x2, q, np.float32(2.6018999517e-02))
    q = fma(x2, q, np.float32(4.6745735407e-01))
    q = fma(x2, q, np.float32(1))
    return divide(multiply(x, p), q)


@compiled
def gelu(value: Real) -> Real:
    """Return x/2 * (1 + erf(x / sqrt(2)))."""
    limit = np.float32(5.1638283730)
    original = read(value)
    x = larger(-limit, smaller(limit, original))
    x2 = multiply(x, x)
    p = fma(x2, np.float32(4.5835321316e-08), np.float32(1.2609783880e-05))
    p = fma(x2, p, np.float32(3.2973114867e-04))
    p = fma(x2, p, np.float32(9.3065137044e-03))
    p = fma(x2, p, np.float32(6.6972173750e-02))
    p = fma(x2, p, np.float32(7.9788452387e-01))
    q = fma(x2, np.float32(1.1988805682e-06), np.float32(7.2267655923e-05))
    q = fma(x2, q, np.float32(1.8622842617e-03))
    q = fma(x2, q, np.float32(2.8431978077e-02))
    q = fma(x2, q, np.float32(2.5060352683e-01))
    q = fma(x2, q, np.float32(1))
    return multiply(multiply(original, np.float32(0.5)), add(divide(multiply(x, p), q), np.float32(1)))


@compiled
def gelu_approximate(value: Real) -> Real:
    """Return x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3)))."""
    limit = np.float32(4.84974098)
    original = read(value)
    x = larger(-limit, smaller(limit, original))
    x2 = multiply(x, x)
    p = fma(x2, np.float32(4.9544411240e-08), np.float32(1.4302649106e-05))
    p = fma(x2, p, np.float32(2.6887017884e-04))
    p = fma(x2, p, np.float32(7.2898347862e-03))
    p = fma(x2, p, np.float32(6.0803253204e-02))
    p = fma(x2, p, np.float32(7.9788458347e-01))
    q = fma(x2, np.float32(1.3433452750e-06), np.float32(7.6477612311e-05))
    q = fma(x2, q, np.float32(1.3060354395e-03))
    q = fma(x2, q, np.float32(2.4381054565e-02))
    q = fma(x2, q, np.float32(2.4369759858e-01))
    q = fma(x2, q, np.float32(1))
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
    p = fma(r, np.float32(1.824996918440e-01), np.float32(1))
    p = multiply(r, fma(r, p, np.float32(1)))
    q = fma(r, np.float32(0.049584995955), np.float32(0.599170029163))
    q = fma(r, q, np.float32(1.5))
    q = fma(r, q, np.float32(1))
    return fma(exponent, np.float32(0.69314718055994531), divide(p, q))


@compiled
def _reduced_sine(x: Real) -> Real:
    """Return the sine of a value that lies near [-pi, 3/2 pi]: it is mirrored into [-pi/2, pi/2]."""
    pi = np.float32(3.1415927)
    x = smaller(x, subtract(pi, x))
    x = larger(x, subtract(-pi, x))
    x = smaller(x, subtract(pi, x))
    x2 = multiply(x, x)
    p = fma(x2, np.float32(3.2340581529e-03), np.float32(-1.3314664364e-01))
    p = multiply(x, fma(x2, p, np.float32(1)))
    q = fma(x2, np.float32(4.8770775902e-04), np.float32(3.3519912511e-02))
    return divide(p, fma(x2, q, np.float32(1)))


@compiled
def _whole_turns_less(x: Real) -> Real:
    """Return x less the multiple of 2 pi that is nearest."""
    turns = np.float32(np.rint(multiply(x, np.float32(0.15915494))))
    return fma(-turns, np.float32(1.9353072e-3), fma(-turns, np.float32(6.28125), x))


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
    gate = fma(x, np.float32(0.16666667163372040), np.float32(0.5))
    return multiply(smaller(larger(gate, np.float32(0)), np.float32(1)), x)
