"""Divisions of integers by powers of two, one for each rounding that hardware and firmware are known to use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.typing import Array

Ints = NDArray[np.int64]

#: A function from int64 values to values / 2**bits; `bits` is 0..62 and broadcasts.
Divide = Callable[[Ints, Ints], Ints]


def down(values: Ints, bits: Ints) -> Ints:
    """Round towards minus infinity: an arithmetic shift."""
    return values >> bits


def to_zero(values: Ints, bits: Ints) -> Ints:
    """Round towards zero, symmetrically for both signs."""
    return (values + (((np.int64(1) << bits) - 1) & (values >> np.int64(63)))) >> bits


def half_up(values: Ints, bits: Ints) -> Ints:
    """Round to nearest, ties upwards."""
    return (values + _half(bits)) >> bits


def half_away(values: Ints, bits: Ints) -> Ints:
    """Round to nearest, ties away from zero."""
    half = _half(bits)
    return (values + half - ((values < 0) & (half > 0))) >> bits


def half_even(values: Ints, bits: Ints) -> Ints:
    """Round to nearest, ties to even."""
    whole = values >> bits
    rest, half = values - (whole << bits), _half(bits)
    is_odd = (whole & 1) == 1
    up: Ints = whole + ((half > 0) & ((rest > half) | ((rest == half) & is_odd)))
    return up


def to_odd(values: Ints, bits: Ints) -> Ints:
    """Cut off, and set the lowest bit if anything was cut off: RISC-V's vxrm mode rod, "jamming"."""
    whole = values >> bits
    odd: Ints = whole | (values != whole << bits)
    return odd


def _half(bits: Ints) -> Ints:
    return (np.int64(1) << bits) >> np.int64(1)


#: Divisions by name.
DIVISIONS: dict[str, Divide] = {
    "towards minus infinity": down,
    "towards zero": to_zero,
    "half up": half_up,
    "half away from zero": half_away,
    "half to even": half_even,
}

#: Divisions of the fixed-point units of processors, which the grammar of requantizers does not draw by itself.
OF_HARDWARE: dict[str, Divide] = {**DIVISIONS, "to odd": to_odd}

#: Roundings of reals, by the same names.
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "towards minus infinity": np.floor,
    "towards zero": np.trunc,
    "half up": lambda x: np.floor(x + x.dtype.type(0.5)),
    "half away from zero": lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x),
    "half to even": np.rint,
}

#: Quotients of a sum by a count above 0, by the same names.
QUOTIENTS: dict[str, Divide] = {
    "half away from zero": lambda total, count: np.sign(total) * ((2 * np.abs(total) + count) // (2 * count)),
    "towards minus infinity": lambda total, count: total // count,
    "towards zero": lambda total, count: np.sign(total) * (np.abs(total) // count),
    "half up": lambda total, count: (2 * total + count) // (2 * count),
    "half to even": lambda total, count: np.rint(total / count).astype(np.int64),
}
