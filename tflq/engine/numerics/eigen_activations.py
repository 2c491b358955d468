"""Float32 exp, tanh and logistic as Eigen computes them on x86 with SSE: groups of four, then the rest.

Source: Eigen 5 (the pin of LiteRT 2.3): functors/UnaryFunctors.h and the packet math of exp, tanh and logistic.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.libm import expf

Floats = NDArray[np.float32]


def exp(x: Floats) -> Floats:
    """Return exp of `x`, as written from a 16-byte boundary on, in any shape.

    Whole groups of four go through a polynomial, the rest through libm.

    Source: pexp_float without fused multiply-add; dense_assignment_loop_impl.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty(flat.shape, np.float32)
    whole = flat.size & ~3
    _exp_into(flat[:whole], out[:whole])
    out[whole:] = expf(flat[whole:])
    return out.reshape(x.shape)


@in_pieces(8, x="r", out="r")
@compiled
def _exp_into(x: Floats, out: Floats) -> None:
    """Compute out = exp(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = _exp(x[i])


@compiled
def _exp(value: Real) -> Real:
    """Reduce x by multiples of log 2, then evaluate a polynomial."""
    if value != value:
        return value
    if value < np.float32(-104.0):
        return np.float32(0)
    x = min(value, np.float32(88.723))
    m = np.floor(x * np.float32(1.44269504088896341) + np.float32(0.5))
    r = m * np.float32(-0.693359375) + x
    r = m * np.float32(2.12194440e-4) + r
    r2 = r * r
    even = r2 * np.float32(1.37449637986719608306884765625e-3) + np.float32(4.166965186595916748046875e-2)
    odd = r2 * np.float32(8.36894474923610687255859375e-3) + np.float32(0.16666518151760101318359375)
    even = r2 * even + np.float32(0.49999988079071044921875)
    p = r * odd + even
    p = r2 * p + (r + np.float32(1))
    return max(np.float32(np.float64(p) * 2.0**m), value)


def tanh(x: Floats) -> Floats:
    """Return tanh of `x`, of any shape, by a rational function, the same for packets and single elements.

    Source: ptanh_float without fused multiply-add.
    """
    out = np.empty(x.shape, np.float32)
    _tanh_into(np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
    return out


@in_pieces(8, x="r", out="r")
@compiled
def _tanh_into(x: Floats, out: Floats) -> None:
    """Compute out = tanh(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = tanh_element(x[i])


@compiled
def tanh_element(value: Real) -> Real:
    """Return `tanh` of one element."""
    clamp = np.float32(7.90738964080810547)
    x = min(max(value, -clamp), clamp)
    x2 = x * x
    p = np.float32(1.394553628e-8) * x2 + np.float32(2.102733560e-5)
    p = p * x2 + np.float32(3.520756727e-3)
    p = p * x2 + np.float32(1.340216100e-1)
    q = np.float32(8.015776984e-7) * x2 + np.float32(3.326951409e-4)
    q = q * x2 + np.float32(2.597254514e-2)
    q = q * x2 + np.float32(4.673548340e-1)
    q = q * x2 + np.float32(1.0)
    return (x2 * x * p + x) / q


def logistic(x: Floats, offset: int = 0) -> Floats:
    """Return 1 / (1 + exp(-x)) of `x`, of any shape, as written to memory `offset` elements behind a 16-byte boundary.

    Whole aligned groups of four go through a polynomial; elements before and behind them go through the C library.
    Source: dense_assignment_loop_impl, scalar_logistic_op<float>.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty(flat.shape, np.float32)
    head = min(-offset % 4, flat.size)
    tail = head + ((flat.size - head) & ~3)
    _logistic_into(flat[head:tail], out[head:tail])
    if head or tail < flat.size:
        rest = np.concatenate((flat[:head], flat[tail:]))
        e = expf(np.minimum(rest, np.float32(_LARGEST_EXPONENT)))
        e /= np.float32(1) + e
        out[:head], out[tail:] = e[:head], e[head:]
    return out.reshape(x.shape)


#: From here on the logistic function is 1 in float32.
_LARGEST_EXPONENT = 16.6355324


@compiled
def logistic_of_exp(value: Real) -> Real:
    """Return the logistic function of a single element, by exp of the C library."""
    largest = np.float32(_LARGEST_EXPONENT)
    e = math.exp(largest if value > largest else value)
    return e / (np.float32(1) + e)


@in_pieces(8, x="r", out="r")
@compiled
def _logistic_into(x: Floats, out: Floats) -> None:
    """Compute out = logistic(x).

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = logistic_element(x[i])


@compiled
def logistic_element(value: Real) -> Real:
    """Return the logistic function as in a group of four: exp(x / 2) squared over one plus itself.

    Half of x is reduced by multiples of log 2, then a polynomial is evaluated.
    """
    if value < np.float32(-104.0):
        return np.float32(0)
    if value != value:
        return value
    half = np.float32(0.5)
    x = min(value, np.float32(_LARGEST_EXPONENT)) * half
    m = np.floor(x * np.float32(1.44269504088896341) + half)
    r = m * np.float32(-0.693359375) + x
    r = m * np.float32(2.12194440e-4) + r
    r2 = r * r
    even = r2 * np.float32(4.1898667812347412109375e-2) + np.float32(0.49999141693115234375)
    odd = r2 * np.float32(8.33471305668354034423828125e-3) + np.float32(0.16666877269744873046875)
    p = r * odd + even
    p = r2 * p + (r + np.float32(1))
    e = p * np.float32(2.0**m)
    e = e * e
    return e / (np.float32(1) + e)
