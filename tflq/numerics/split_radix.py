"""The real Fourier transform of Ooura's FFT package, in float64 and in its order of operations.

N complex points are halved and quartered by blocks of two kinds until single points are left, which then lie in
bit-reversed order. A block of the first kind, x0 x1 x2 x3 being its quarters, becomes

    x0+x2+x1+x3,  x0+x2-x1-x3,  u(x0-x2 + i(x1-x3)),  u**3 (x0-x2 - i(x1-x3))       u = exp(i 2 pi j / size)

so that its second quarter still lacks the factor u**2. A block of the second kind is such a quarter: it starts from
v x with v = exp(i pi j / size). Every sum, product and table entry is what the original computes: what is the same in
exact arithmetic may differ in the last bit. Negations are free.
Source: Ooura, "General Purpose FFT Package", fftsg.c rdft, makewt, makect, cftf1st, cftmdl1, cftmdl2, cftf161, cftf162,
rftfsub.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.numerics.libm_double import cos, sin

Doubles = NDArray[np.floating[Any]]
#: Real and imaginary parts.
Complex = tuple[Doubles, Doubles]

_LEAF = 16  # blocks of this size take some factors from elsewhere in the tables

#: Kinds of the quarters that a block of either kind leaves.
_QUARTERS = {1: (1, 2, 1, 1), 2: (1, 2, 1, 2)}


def real_transform(x: Doubles) -> Complex:
    """sum_j x[j] exp(+i 2 pi j k / n) for k = 0 .. n/2, over the last axis, whose size n is a power of two above 1."""
    re, im = _complex_transform(x[..., 0::2], x[..., 1::2])
    re, im = _untangle(re, im)
    first, last = re[..., :1] + im[..., :1], re[..., :1] - im[..., :1]
    zero = np.zeros_like(first)
    return np.concatenate([first, re[..., 1:], last], axis=-1), np.concatenate([zero, im[..., 1:], zero], axis=-1)


def _untangle(re: Doubles, im: Doubles) -> Complex:
    """From the transform of even + i odd elements to that of all. Source: rftfsub."""
    size = re.shape[-1]
    if size <= 2:
        return re, im
    table = _half_table(size // 2)
    j = np.arange(1, size // 2)
    k = size - j
    wr, wi = 0.5 - table[size // 2 - j], table[j]
    xr, xi = re[..., j] - re[..., k], im[..., j] + im[..., k]
    yr, yi = wr * xr - wi * xi, wr * xi + wi * xr
    re, im = re.copy(), im.copy()
    re[..., j] -= yr
    im[..., j] -= yi
    re[..., k] += yr
    im[..., k] -= yi
    return re, im


@cache
def _half_table(size: int) -> Doubles:
    """Halved cosines up to a quarter turn, but the first is not halved. Source: makect."""
    half = size // 2
    delta = math.atan(1.0) / half
    table = np.empty(size)
    angles = delta * np.arange(1, half)
    table[0] = math.cos(delta * half)
    table[half] = 0.5 * table[0]
    table[1:half] = 0.5 * cos(angles)
    table[half + 1 :] = (0.5 * sin(angles))[::-1]
    return table


@dataclass(frozen=True, slots=True, eq=False)
class _Factors:
    """Factors of one kind of block, by place in a quarter: (real, imaginary), the third powers' imaginary negated."""

    u: Complex
    u3: Complex
    v: Complex
    v3: Complex


def _complex_transform(re: Doubles, im: Doubles) -> Complex:
    """Transform of a power of two of points, in natural order."""
    size = re.shape[-1]
    batch = re.shape[:-1]
    re, im = re.reshape(*batch, 1, size), im.reshape(*batch, 1, size)
    kinds = np.array([1])
    block = size
    while block > 1:
        step = _quarter if block > 2 else _halve
        re, im, kinds = step(re, im, kinds, size)
        block = re.shape[-1]
    order = _bit_reversed(size)
    return re.reshape(*batch, size)[..., order], im.reshape(*batch, size)[..., order]


@cache
def _bit_reversed(size: int) -> NDArray[np.intp]:
    bits = size.bit_length() - 1
    order = np.zeros(size, np.intp)
    for bit in range(bits):
        order |= ((np.arange(size) >> bit) & 1) << (bits - 1 - bit)
    return order


def _halve(re: Doubles, im: Doubles, kinds: NDArray[np.intp], size: int) -> tuple[Doubles, Doubles, NDArray[np.intp]]:
    """Blocks of two points: a + b and a - b, or a + ib and a - ib. Source: cftx020, the ends of cftf081 and cftf082."""
    turned = kinds == 2
    ar, ai, br, bi = re[..., 0], im[..., 0], re[..., 1], im[..., 1]
    br, bi = np.where(turned, -bi, br), np.where(turned, br, bi)
    points = np.stack([ar + br, ar - br], axis=-1), np.stack([ai + bi, ai - bi], axis=-1)
    return points[0].reshape(*re.shape[:-2], -1, 1), points[1].reshape(*re.shape[:-2], -1, 1), np.repeat(kinds, 2)


def _quarter(re: Doubles, im: Doubles, kinds: NDArray[np.intp], size: int) -> tuple[Doubles, Doubles, NDArray[np.intp]]:
    """One radix-4 step on all blocks; `size` is that of the whole transform."""
    block = re.shape[-1]
    shape = (*re.shape[:-1], 4, block // 4)
    re, im = re.reshape(shape), im.reshape(shape)
    out = np.empty_like(re), np.empty_like(im)
    for kind, work in ((1, _first_kind), (2, _second_kind)):
        chosen = kinds == kind
        if chosen.any():
            factors = _factors(size, block, kind)
            xs = tuple((re[..., chosen, q, :], im[..., chosen, q, :]) for q in range(4))
            for q, (qr, qi) in enumerate(work(xs, factors, _eighth_root(size))):
                out[0][..., chosen, q, :], out[1][..., chosen, q, :] = qr, qi
    flat = (*shape[:-3], shape[-3] * 4, shape[-1])
    return out[0].reshape(flat), out[1].reshape(flat), np.array([q for kind in kinds for q in _QUARTERS[int(kind)]])


def _first_kind(xs: tuple[Complex, ...], factors: _Factors, root: float) -> tuple[Complex, ...]:
    """Source: cftmdl1, cftf1st."""
    (ar, ai), (br, bi), (cr, ci), (dr, di) = xs
    x0r, x0i, x1r, x1i = ar + cr, ai + ci, ar - cr, ai - ci
    x2r, x2i, x3r, x3i = br + dr, bi + di, br - dr, bi - di
    plus, minus = (x1r - x3i, x1i + x3r), (x1r + x3i, x1i - x3r)
    third, fourth = _times(factors.u, plus), _times_conjugate(factors.u3, minus)
    _set(third, 0, plus[0], plus[1])
    _set(fourth, 0, minus[0], minus[1])
    if ar.shape[-1] > 1:
        middle = ar.shape[-1] // 2
        pr, pi, mr, mi = (_at(x, middle) for x in (*plus, *minus))
        _set(third, middle, root * (pr - pi), root * (pi + pr))
        _set(fourth, middle, -root * (mr + mi), -root * (mi - mr))
    return (x0r + x2r, x0i + x2i), (x0r - x2r, x0i - x2i), third, fourth


def _second_kind(xs: tuple[Complex, ...], factors: _Factors, root: float) -> tuple[Complex, ...]:
    """Source: cftmdl2."""
    (ar, ai), (br, bi), (cr, ci), (dr, di) = xs
    x0, x1 = (ar - ci, ai + cr), (ar + ci, ai - cr)
    x2, x3 = (br - di, bi + dr), (br + di, bi - dr)
    y0, y2 = _times(factors.u, x0), _times(factors.v, x2)
    z0, z2 = _times_conjugate(factors.u3, x1), _times_conjugate(factors.v3, x3)
    x2r, x2i, x3r, x3i = (_at(x, 0) for x in (*x2, *x3))
    _set(y0, 0, *x0)
    _set(y2, 0, root * (x2r - x2i), root * (x2i + x2r))
    _set(z0, 0, *x1)
    _set(z2, 0, -(root * (x3i + x3r)), root * (x3r - x3i))
    return (
        (y0[0] + y2[0], y0[1] + y2[1]), (y0[0] - y2[0], y0[1] - y2[1]),
        (z0[0] + z2[0], z0[1] + z2[1]), (z0[0] - z2[0], z0[1] - z2[1]),
    )  # fmt: skip


def _times(w: Complex, x: Complex) -> Complex:
    return w[0] * x[0] - w[1] * x[1], w[0] * x[1] + w[1] * x[0]


def _times_conjugate(w: Complex, x: Complex) -> Complex:
    return w[0] * x[0] + w[1] * x[1], w[0] * x[1] - w[1] * x[0]


def _at(x: Doubles, place: int) -> Doubles:
    """One place, as arrays of the whole quarter broadcast against it."""
    return x[..., place : place + 1]


def _set(x: Complex, place: int, re: Doubles, im: Doubles) -> None:
    x[0][..., place], x[1][..., place] = re[..., 0], im[..., 0]


# --- tables ----------------------------------------------------------------------------------------------------------


@cache
def _eighth_root(size: int) -> float:
    """cos(pi / 4) as the table has it. Source: makewt."""
    half = max(size // 4, 1)
    return math.cos(math.atan(1.0) / half * half)


def _circle(size: int, points: int, places: NDArray[np.intp]) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """cos, sin of 2 pi place / points and of three times that, from the table for a transform of `size`."""
    delta = math.atan(1.0) / (size // 4)
    steps = places * 2 * size // points
    once, thrice = delta * steps, 3 * delta * steps
    return cos(once), sin(once), cos(thrice), sin(thrice)


@cache
def _factors(size: int, block: int, kind: int) -> _Factors:
    """Factors for the blocks of one kind and size. Places 0, and the middle of the first kind, are not read."""
    quarter = block // 4
    if kind == 1:
        u, u3 = _first_factors(size, block)
        return _Factors(u, u3, u, u3)
    below = np.arange(quarter // 2)
    c, s, c3, s3 = _circle(size, 2 * block, below)
    dc, ds, dc3, ds3 = _circle(size, 2 * block, quarter - below)
    if block == _LEAF:
        dc, ds, dc3, ds3 = c3, s3, -s, c
    u, u3 = _mirrored((c, s), (dc, ds), quarter), _mirrored((c3, -s3), (dc3, -ds3), quarter)
    v, v3 = _mirrored((ds, dc), (s, c), quarter), _mirrored((-ds3, dc3), (-s3, c3), quarter)
    if quarter > 1:
        (mc,), (ms,), _, _ = _circle(size, 2 * block, np.array([quarter // 2]))
        for table, re, im in ((u, mc, ms), (v, ms, mc), (u3, ms, -mc), (v3, -mc, ms)):
            table[0][quarter // 2], table[1][quarter // 2] = re, im
    return _Factors(u, u3, v, v3)


def _first_factors(size: int, block: int) -> tuple[Complex, Complex]:
    """u and u**3; behind the middle of a quarter with the parts exchanged."""
    quarter = block // 4
    below = np.arange(quarter // 2)
    if block == size and size > _LEAF:
        c, s, c3, s3 = _interpolated(size)
    else:
        c, s, c3, s3 = _circle(size, block, below)
        if block == _LEAF:
            c3, s3 = s, c
    return _mirrored((c, s), (s, c), quarter), _mirrored((c3, -s3), (-s3, c3), quarter)


def _interpolated(size: int) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Factors of the first step: the table has every other one, and the sum of two neighbours gives the one between."""
    middle = size // 8
    tables = _circle(size, size // 2, np.arange(middle // 2))
    ends = (_eighth_root(size),) * 2 + (-_eighth_root(size), _eighth_root(size))
    delta = math.atan(1.0) / (size // 4)
    scales = (0.5 / math.cos(delta * 2),) * 2 + (0.5 / math.cos(delta * 6),) * 2
    out = []
    for table, end, scale in zip(tables, ends, scales, strict=True):
        full = np.empty(middle)
        full[0::2] = table
        full[1::2] = scale * (table + np.append(table[1:], end))
        out.append(full)
    return out[0], out[1], out[2], out[3]


def _mirrored(lower: Complex, upper: Complex, quarter: int) -> Complex:
    """`lower` up to the middle of a quarter; behind it `upper` backwards, all but its first place."""
    table = np.zeros(quarter), np.zeros(quarter)
    below = quarter // 2
    table[0][:below], table[1][:below] = lower
    table[0][below + 1 :], table[1][below + 1 :] = upper[0][:0:-1], upper[1][:0:-1]
    return table
