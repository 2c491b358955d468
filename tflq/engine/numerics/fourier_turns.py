"""Tables of the factors exp(i*angle) of a Fourier transform, as fft2d computes them.

Source: fft2d 1.0 fftsg.c makewt, makect.
"""

from __future__ import annotations

from functools import cache
from math import atan, cos, sin

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.complex128]

_QUARTER_PI = atan(1.0)
#: cos(pi/4)
HALF_ROOT = cos(_QUARTER_PI)

#: Columns of a table of turns: of plain blocks, then of shifted ones.
PLAIN_1, PLAIN_3, EVEN_1, ODD_1, EVEN_3, ODD_3 = 0, 1, 2, 3, 4, 5


@cache
def turns(count: int) -> Points:
    """Return the factors of every pass over `count` points, pass after pass, one row for every quadruple of points."""
    tables = [np.zeros((0, 6), np.complex128)]
    size = count
    while size > 16:
        table = np.zeros((size // 4, 6), np.complex128)
        _fill_plain(table, _interpolate(size) if size == count else _direct(size))
        _fill_shifted(table, size)
        tables.append(table)
        size //= 4
    return np.concatenate(tables)


@cache
def leaf_turns() -> Points:
    """Return exp(i*pi/8), exp(i*pi/16), exp(3*i*pi/16)."""
    step = _QUARTER_PI / 16
    return np.array([_turn(_QUARTER_PI / 4 * 2), _turn(step * 4), _turn(3 * step * 4)])


@cache
def real_turns(count: int) -> Points:
    """Return the factors of differences in a transform of `count` reals, for frequencies 1 to count/4 - 1."""
    quarter = count // 4
    half = quarter // 2
    values = np.zeros(quarter + 1)
    if quarter > 1:
        step = _QUARTER_PI / half
        values[half] = 0.5 * cos(step * half)
        for j in range(1, half):
            values[j], values[quarter - j] = 0.5 * cos(step * j), 0.5 * sin(step * j)
    k = np.arange(1, max(quarter, 1))
    return (0.5 - values[quarter - k]) + 1j * values[k]


def _turn(angle: float) -> complex:
    return complex(cos(angle), sin(angle))


def _swap(z: complex) -> complex:
    return complex(z.imag, z.real)


def _group(step: float, k: int) -> tuple[complex, complex]:
    """Return exp(i*a) and exp(-3*i*a) for a = step * k. 3 * step is rounded before it is multiplied."""
    return _turn(step * k), _turn(3 * step * k).conjugate()


def _direct(size: int) -> list[tuple[complex, complex]]:
    """Return the factors of the first eighth of a pass that is not the first, from its element 1 on."""
    step = _QUARTER_PI / (size // 2)
    return [_group(step, 4 * e) for e in range(1, size // 8)]


def _interpolate(size: int) -> list[tuple[complex, complex]]:
    """Return the first pass's twiddle factors: a table of half the length, odd elements from their two neighbours."""
    step = _QUARTER_PI / (size // 4)
    one, three = 0.5 / cos(step * 2), 0.5 / cos(step * 6)
    known = [(1 + 0j, 1 + 0j), *(_group(step, 4 * i) for i in range(1, size // 16))]
    known.append((complex(HALF_ROOT, HALF_ROOT), complex(-HALF_ROOT, -HALF_ROOT)))
    factors = []
    for i in range(size // 16):
        (a, b), (c, d) = known[i], known[i + 1]
        factors.append((_scale(one, a + c), _scale(three, b + d)))
        factors.append(known[i + 1])
    return factors[:-1]


def _scale(factor: float, z: complex) -> complex:
    return complex(factor * z.real, factor * z.imag)


def _fill_plain(table: Points, first: list[tuple[complex, complex]]) -> None:
    """Fill the rows of plain blocks: those of the second eighth are the first, mirrored."""
    for e, (one, three) in enumerate(first, 1):
        table[e, PLAIN_1], table[e, PLAIN_3] = one, three
        table[-e, PLAIN_1], table[-e, PLAIN_3] = _swap(one), _swap(three)


def _fill_shifted(table: Points, size: int) -> None:
    """Fill the rows of shifted blocks."""
    step = _QUARTER_PI / size
    for e in range(1, size // 8):
        even_1, even_3 = _group(step, 4 * e)
        far_1, far_3 = _group(step, size - 4 * e)
        table[e, EVEN_1:] = even_1, _swap(far_1), even_3, _swap(far_3)
        table[-e, EVEN_1:] = far_1, _swap(even_1), far_3, _swap(even_3)
    table[size // 8, EVEN_1] = _group(step, size // 2)[0]
