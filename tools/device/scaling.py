"""Multipliers and roundings of a device, in int64 and float64 arrays, channels last."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Integers of 64 bits: an array, or one of NumPy's numbers.
Ints: TypeAlias = Any
Reals = NDArray[np.float64]


def wrapped(values: Any, bits: int) -> Ints:
    """Return two's complement of `bits` bits."""
    half = 1 << (bits - 1)
    return ((np.asarray(values, np.int64) + half) & ((1 << bits) - 1)) - half


def saturated(values: Any, bits: int) -> Ints:
    """Return values saturated to `bits` bits."""
    half = 1 << (bits - 1)
    return np.clip(np.asarray(values, np.int64), -half, half - 1)


def fixed(real: float, bits: int = 31) -> tuple[int, int]:
    """Return mantissa, of `bits` bits but always Q31, and exponent: real is about mantissa * 2 ** (exponent - 31)."""
    fraction, exponent = math.frexp(real)
    mantissa = math.floor(fraction * 2**bits + 0.5)
    if mantissa == 2**bits:
        mantissa, exponent = mantissa >> 1, exponent + 1
    return (mantissa << (31 - bits), exponent) if exponent >= -31 else (0, 0)


def _fixed(reals: Reals, bits: int) -> tuple[Ints, Ints]:
    pairs = [fixed(float(r), bits) for r in reals]
    return np.array([m for m, _ in pairs], np.int64), np.array([e for _, e in pairs], np.int64)


def half_away_shift(values: Ints, by: Any) -> Ints:
    """Divide by 2 ** by, ties away from zero."""
    by = np.asarray(by, np.int64)
    half = np.where(by > 0, np.int64(1) << np.maximum(by - 1, 0), 0)
    return np.sign(values) * ((np.abs(values) + half) >> by)


def half_away(values: Any) -> Any:
    """Round floats to the nearest integers, ties away from zero."""
    whole = np.trunc(values)
    return whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0)


def _twice(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    """Round half up in the high product, half away in the shift to the right; the shift to the left wraps."""
    shifted = wrapped(total << np.maximum(exponent, 0), 32)
    return half_away_shift((shifted * mantissa + (1 << 30)) >> 31, np.maximum(-exponent, 0))


def _up_twice(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    shifted = wrapped(total << np.maximum(exponent, 0), 32)
    high, right = (shifted * mantissa + (1 << 30)) >> 31, np.maximum(-exponent, 0)
    return (high + ((np.int64(1) << right) >> 1)) >> right


def _up(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    return (total * mantissa + (np.int64(1) << (30 - exponent))) >> (31 - exponent)


def _even(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    product, right = total * mantissa, 31 - exponent
    whole = product >> right
    rest, half = product - (whole << right), np.int64(1) << (right - 1)
    return whole + ((rest > half) | ((rest == half) & (whole & 1 == 1)))


def _away(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    return half_away_shift(total * mantissa, 31 - exponent)


def _floor(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    return (total * mantissa) >> (31 - exponent)


def _towards_zero(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    product = total * mantissa
    return np.sign(product) * (np.abs(product) >> (31 - exponent))


def _sixteen_bits(total: Ints, mantissa: Ints, exponent: Ints) -> Ints:
    """Round once, half up, with the multiplier as Q15, kept below 1."""
    short = np.minimum((mantissa + (1 << 15)) >> 16, 0x7FFF)
    return (total * short + (np.int64(1) << (14 - exponent))) >> (15 - exponent)


#: Roundings of the product with a mantissa (Q31) and an exponent.
FIXED: dict[str, Callable[[Ints, Ints, Ints], Ints]] = {
    "twice": _twice,
    "up twice": _up_twice,
    "half up": _up,
    "half even": _even,
    "half away": _away,
    "floor": _floor,
    "towards zero": _towards_zero,
    "sixteen bits": _sixteen_bits,
}

#: Roundings of the product with a float64 multiplier.
FLOATING: dict[str, Callable[[Reals], Any]] = {"float64 half away": half_away, "float32 half even": np.rint}


def _exactly(total: Ints, factors: Any) -> Ints:
    """Multiply exactly by float32 multipliers, 24 bits and a power of two, and round once, half up."""
    fraction, exponent = np.frexp(factors)
    right = 24 - exponent.astype(np.int64)
    return (total * np.ldexp(fraction, 24).astype(np.int64) + (np.int64(1) << (right - 1))) >> right


def scaled(total: Any, reals: Reals, rounding: str, mantissa_bits: int = 31) -> Ints:
    """Return accumulators in LSB of the output, by one multiplier or one per channel.

    Accumulators are int32, or int64 for "sixteen bits".
    """
    total = np.asarray(total, np.int64)
    if rounding == "float32 half even":
        product = total.astype(np.float32) * reals.astype(np.float32)
        return np.rint(np.clip(product, -(2.0**30), 2.0**30)).astype(np.int64)
    if rounding == "float32 half up":
        return _exactly(total, reals.astype(np.float32))
    if rounding in FLOATING:
        return FLOATING[rounding](total.astype(np.float64) * reals).astype(np.int64)
    mantissa, exponent = _fixed(reals, mantissa_bits)
    return wrapped(FIXED[rounding](total, mantissa, exponent), 32)
