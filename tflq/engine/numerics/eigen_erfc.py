"""The complementary error function as Eigen computes it on x86 with SSE and no fused multiply-add.

Source: Eigen 5 (the pin of LiteRT 2.3): SpecialFunctionsImpl.h generic_fast_erfc<float>; GenericPacketMathFunctions.h
pexp_float, twoprod_low, veltkamp_splitting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.libm import expf

Floats = NDArray[np.float32]

#: Beyond this the function is 0 or 2.
_CLAMP = np.float32(11)
_ONE, _TWO = np.float32(1), np.float32(2)
_SPLITTER = np.float32(4097)

# Polynomials, highest power first.
_SMALL = (
    5.61802298761904239654541015625e-04,
    -4.91381669417023658752441406250e-03,
    2.67075151205062866210937500000e-02,
    -1.12800106406211853027343750000e-01,
    3.76122951507568359375000000000e-01,
    -1.12837910652160644531250000000e00,
)
_NUMERATOR = (
    1.0208116471767425537109375e-01,
    4.2920666933059692382812500e-01,
    3.2379078865051269531250000e-01,
    5.3971976041793823242187500e-02,
)
_DENOMINATOR = (
    1.7251677811145782470703125e-02,
    3.9137163758277893066406250e-01,
    1.0,
    6.2173241376876831054687500e-01,
    9.5662862062454223632812500e-02,
)

_LOG2_E = np.float32(1.44269504088896341)
_LOG_2_HIGH, _LOG_2_LOW = np.float32(-0.693359375), np.float32(2.12194440e-4)
#: exp(x) is infinite above, and 0 below.
_LARGEST, _SMALLEST = np.float32(88.723), np.float32(-104)


def erfc(x: Floats) -> Floats:
    """Return erfc of the flat array `x`. Groups of four take Eigen's exponential, the rest the C library's."""
    whole = x.size & ~3
    return np.concatenate([_erfc(x[:whole], packet_exp), _erfc(x[whole:], expf)])


def single_erfc(x: Floats) -> Floats:
    """Return erfc as computed one element at a time."""
    return _erfc(x, expf)


def _erfc(values: Floats, exp: Callable[[Floats], Floats]) -> Floats:
    x = np.clip(values, -_CLAMP, _CLAMP)
    square = x * x
    small = x * _polynomial(square, _SMALL) + _ONE
    large = square > _ONE
    if not large.any():
        return small
    safe = np.where(large, x, _TWO)
    square = safe * safe
    power = exp(-square)
    power = power - power * _square_error(safe, square)
    inverse = _ONE / square
    ratio = _polynomial(inverse, _NUMERATOR) / (safe * _polynomial(inverse, _DENOMINATOR))
    return np.where(large, power * ratio + np.where(safe < 0, _TWO, np.float32(0)), small)


def _polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    """Evaluate a polynomial by Horner's scheme; every product and every sum is rounded."""
    total = np.full(x.shape, coefficients[0], np.float32)
    for coefficient in coefficients[1:]:
        total = total * x + np.float32(coefficient)
    return total


def _square_error(x: Floats, square: Floats) -> Floats:
    """Return x * x - square, by halves of 12 bits."""
    spread = _SPLITTER * x
    high = (x - spread) + spread
    low = x - high
    error = high * high - square
    error = high * low + error
    error = low * high + error
    rest: Floats = low * low + error
    return rest


def packet_exp(x: Floats) -> Floats:
    """Return exp by a polynomial of sixth order around multiples of log 2."""
    bounded = np.minimum(x, _LARGEST)
    m = np.floor(bounded * _LOG2_E + np.float32(0.5))
    r = m * _LOG_2_HIGH + bounded
    r = m * _LOG_2_LOW + r
    r2 = r * r
    even = r2 * np.float32(1.37449637986719608306884765625e-3) + np.float32(4.166965186595916748046875e-2)
    odd = r2 * np.float32(8.36894474923610687255859375e-3) + np.float32(0.16666518151760101318359375)
    even = r2 * even + np.float32(0.49999988079071044921875)
    y = r2 * (r * odd + even) + (r + _ONE)
    with np.errstate(all="ignore"):
        return np.where(x < _SMALLEST, np.float32(0), np.ldexp(y, np.nan_to_num(m).astype(np.int32)))
