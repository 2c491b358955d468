"""The discrete Fourier transform of fft2d (Takuya Ooura), operation by operation: every sum rounds as there.

Tables of the factors exp(i*angle) of a Fourier transform, as fft2d computes them.

Source: fft2d 1.0 fftsg.c makewt, makect.

The passes of a Fourier transform: blocks cut in quarters, blocks of 16 and 8 points, the order of the frequencies.

A *plain* block becomes plain, shifted, plain, plain; a *shifted* block plain, shifted, plain, shifted. Source: fft2d
1.0 fftsg.c. Factors that are 1, i or exp(i*pi/4) have shorter forms, which round differently: each is written where
it is used.

A transform of N = 2**k points, y[f] = sum of x[j] * exp(+2*pi*i*f*j/N), in float64. Blocks are cut in quarters until 16
or 8 points are left: a *plain* block into plain, shifted, plain, plain; a *shifted* block (frequencies half a step
further) into plain, shifted, plain, shifted. Frequencies then lie bit-reversed.

Source: fft2d 1.0 fftsg.c cdft, rdft, makewt, makect (split radix); fftsg2d.c rdft2d. Factors that are 1, i or
exp(i*pi/4) have shorter forms, which round differently: each is written where it is used.
"""

from __future__ import annotations

from functools import cache
from math import atan, cos, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps, most
from tflq.typing import Array

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


def _fourier_turns_swap(z: complex) -> complex:
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
        table[-e, PLAIN_1], table[-e, PLAIN_3] = _fourier_turns_swap(one), _fourier_turns_swap(three)


def _fill_shifted(table: Points, size: int) -> None:
    """Fill the rows of shifted blocks."""
    step = _QUARTER_PI / size
    for e in range(1, size // 8):
        even_1, even_3 = _group(step, 4 * e)
        far_1, far_3 = _group(step, size - 4 * e)
        table[e, EVEN_1:] = even_1, _fourier_turns_swap(far_1), even_3, _fourier_turns_swap(far_3)
        table[-e, EVEN_1:] = far_1, _fourier_turns_swap(even_1), far_3, _fourier_turns_swap(even_3)
    table[size // 8, EVEN_1] = _group(step, size // 2)[0]


#: A complex128 scalar of compiled code.
Complex = Any


@compiled
def _times_i(z: Complex) -> Complex:
    return complex(-z.imag, z.real)


@compiled
def _flip(z: Complex) -> Complex:
    return complex(z.imag, z.real)


@compiled
def conjugate(z: Complex) -> Complex:
    """Return the conjugate of z."""
    return complex(z.real, -z.imag)


@compiled
def _times_eighth(c: Real, z: Complex) -> Complex:
    """Return z * exp(i*pi/4), where c = cos(pi/4)."""
    return complex(c * (z.real - z.imag), c * (z.imag + z.real))


@compiled
def _combine(z: Points, even_sum: Complex, even_difference: Complex, odd_sum: Complex, odd_difference: Complex) -> None:
    """Write the last four sums of a block of four.

    The caller guarantees: `z` has 4 points at least.
    """
    z[0] = even_sum + odd_sum
    z[1] = even_sum - odd_sum
    z[2] = even_difference + _times_i(odd_difference)
    z[3] = even_difference - _times_i(odd_difference)


@compiled
def _pass_plain(z: Points, w: Points, c: Real) -> None:
    """Apply one pass to a plain block.

    The caller guarantees: z.size is a multiple of 4, and `w` has a row for every four points.
    """
    m = z.size // 4
    middle = m // 2
    for e in range(m):
        x0, x1 = z[e] + z[e + 2 * m], z[e] - z[e + 2 * m]
        x2, x3 = z[e + m] + z[e + 3 * m], z[e + m] - z[e + 3 * m]
        up, down = x1 + _times_i(x3), x1 - _times_i(x3)
        z[e] = x0 + x2
        z[e + m] = x0 - x2
        if e == 0:
            z[e + 2 * m] = up
            z[e + 3 * m] = down
        elif e == middle:
            z[e + 2 * m] = _times_eighth(c, up)
            z[e + 3 * m] = complex(-c * (down.real + down.imag), -c * (down.imag - down.real))
        else:
            z[e + 2 * m] = w[e, PLAIN_1] * up
            z[e + 3 * m] = conjugate(w[e, PLAIN_3]) * down


@compiled
def _pass_shifted(z: Points, w: Points, c: Real) -> None:
    """Apply one pass to a shifted block.

    The caller guarantees: z.size is a multiple of 4, and `w` has a row for every four points.
    """
    m = z.size // 4
    middle = m // 2
    for e in range(m):
        x0, x1 = z[e] + _times_i(z[e + 2 * m]), z[e] - _times_i(z[e + 2 * m])
        x2, x3 = z[e + m] + _times_i(z[e + 3 * m]), z[e + m] - _times_i(z[e + 3 * m])
        if e == 0:
            y0, y2 = x0, _times_eighth(c, x2)
            y1, y3 = x1, _times_i(_times_eighth(c, x3))
        elif e == middle:
            turn = w[e, EVEN_1]
            y0, y2 = turn * x0, _flip(turn) * x2
            y1, y3 = _flip(turn) * x1, -(turn * x3)
        else:
            y0, y2 = w[e, EVEN_1] * x0, w[e, ODD_1] * x2
            y1, y3 = conjugate(w[e, EVEN_3]) * x1, conjugate(w[e, ODD_3]) * x3
        z[e] = y0 + y2
        z[e + m] = y0 - y2
        z[e + 2 * m] = y1 + y3
        z[e + 3 * m] = y1 - y3


@compiled
def _plain_16(z: Points, turn: Complex, c: Real) -> None:
    """Transform a plain block of 16 points.

    The caller guarantees: `z` has 16 points.
    """
    x0, x1, x2, x3 = z[0] + z[8], z[0] - z[8], z[4] + z[12], z[4] - z[12]
    y0, y4, y8, y12 = x0 + x2, x0 - x2, x1 + _times_i(x3), x1 - _times_i(x3)
    x0, x1, x2, x3 = z[1] + z[9], z[1] - z[9], z[5] + z[13], z[5] - z[13]
    y1, y5 = x0 + x2, x0 - x2
    y9, y13 = turn * (x1 + _times_i(x3)), _flip(turn) * (x1 - _times_i(x3))
    x0, x1, x2, x3 = z[2] + z[10], z[2] - z[10], z[6] + z[14], z[6] - z[14]
    y2, y6 = x0 + x2, x0 - x2
    y10, x1 = _times_eighth(c, x1 + _times_i(x3)), x1 - _times_i(x3)
    y14 = complex(c * (x1.real + x1.imag), c * (x1.imag - x1.real))
    x0, x1, x2, x3 = z[3] + z[11], z[3] - z[11], z[7] + z[15], z[7] - z[15]
    y3, y7 = x0 + x2, x0 - x2
    y11, y15 = _flip(turn) * (x1 + _times_i(x3)), turn * (x1 - _times_i(x3))
    _combine(z[12:], y12 - y14, y12 + y14, y13 - y15, y13 + y15)
    _combine(z[8:], y8 + y10, y8 - y10, y9 + y11, y9 - y11)
    x2, x3 = _times_eighth(c, y5 + _times_i(y7)), _times_eighth(c, y5 - _times_i(y7))
    _combine(z[4:], y4 + _times_i(y6), y4 - _times_i(y6), x2, x3)
    _combine(z, y0 + y2, y0 - y2, y1 + y3, y1 - y3)


@compiled
def _shift_16(z: Points, leaf: Points, c: Real) -> None:
    """Transform a shifted block of 16 points.

    The caller guarantees: `z` has 16 points, `leaf` 3.
    """
    two, one, three = leaf[0], leaf[1], leaf[2]
    x0, x1 = z[0] + _times_i(z[8]), _times_eighth(c, z[4] + _times_i(z[12]))
    y0, y4 = x0 + x1, x0 - x1
    x0, x1 = z[0] - _times_i(z[8]), _times_eighth(c, z[4] - _times_i(z[12]))
    y8, y12 = x0 + _times_i(x1), x0 - _times_i(x1)
    x0, x1 = one * (z[1] + _times_i(z[9])), _flip(three) * (z[5] + _times_i(z[13]))
    y1, y5 = x0 + x1, x0 - x1
    x0, x1 = three * (z[1] - _times_i(z[9])), conjugate(one) * (z[5] - _times_i(z[13]))
    y9, y13 = x0 - x1, x0 + x1
    x0, x1 = two * (z[2] + _times_i(z[10])), _flip(two) * (z[6] + _times_i(z[14]))
    y2, y6 = x0 + x1, x0 - x1
    x0, x1 = _flip(two) * (z[2] - _times_i(z[10])), two * (z[6] - _times_i(z[14]))
    y10, y14 = x0 - x1, x0 + x1
    x0, x1 = three * (z[3] + _times_i(z[11])), _flip(one) * (z[7] + _times_i(z[15]))
    y3, y7 = x0 + x1, x0 - x1
    x0, x1 = conjugate(_flip(one)) * (z[3] - _times_i(z[11])), _flip(three) * (z[7] - _times_i(z[15]))
    y11, y15 = x0 + x1, x0 - x1
    _combine(z, y0 + y2, y0 - y2, y1 + y3, y1 - y3)
    x0, x1 = _times_eighth(c, y5 + _times_i(y7)), _times_eighth(c, y5 - _times_i(y7))
    _combine(z[4:], y4 + _times_i(y6), y4 - _times_i(y6), x0, x1)
    _combine(z[8:], y8 + y10, y8 - y10, y9 - y11, y9 + y11)
    x0, x1 = _times_eighth(c, y13 - _times_i(y15)), _times_eighth(c, y13 + _times_i(y15))
    _combine(z[12:], y12 + _times_i(y14), y12 - _times_i(y14), x0, x1)


@compiled
def _plain_8(z: Points, c: Real) -> None:
    """Transform a plain block of 8 points.

    The caller guarantees: `z` has 8 points.
    """
    x0, x1, x2, x3 = z[0] + z[4], z[0] - z[4], z[2] + z[6], z[2] - z[6]
    y0, y2, y1, y3 = x0 + x2, x0 - x2, x1 + _times_i(x3), x1 - _times_i(x3)
    x0, x1, x2, x3 = z[1] + z[5], z[1] - z[5], z[3] + z[7], z[3] - z[7]
    y4, y6 = x0 + x2, x0 - x2
    y5, y7 = _times_eighth(c, x1 + _times_i(x3)), _times_eighth(c, x1 - _times_i(x3))
    _combine(z[4:], y1, y3, y5, y7)
    _combine(z, y0, y2, y4, y6)


@compiled
def _shift_8(z: Points, turn: Complex, c: Real) -> None:
    """Transform a shifted block of 8 points.

    The caller guarantees: `z` has 8 points.
    """
    y0, y1 = z[0] + _times_i(z[4]), z[0] - _times_i(z[4])
    y2, y3 = _times_eighth(c, z[2] + _times_i(z[6])), _times_eighth(c, z[2] - _times_i(z[6]))
    y4, y5 = turn * (z[1] + _times_i(z[5])), _flip(turn) * (z[1] - _times_i(z[5]))
    y6, y7 = _flip(turn) * (z[3] + _times_i(z[7])), turn * (z[3] - _times_i(z[7]))
    _combine(z, y0 + y2, y0 - y2, y4 + y6, y4 - y6)
    _combine(z[4:], y1 + _times_i(y3), y1 - _times_i(y3), y5 - y7, y5 + y7)


@compiled
def _is_shifted(block: Int) -> Any:
    """Return whether that block of a pass is shifted, by its number's last digit to the base 4 that is not 3."""
    while block & 3 == 3:
        block >>= 2
    return block & 3 == 1


@compiled
def _leaf(z: Points, shifted: Any, leaf: Points, c: Real) -> None:
    """Transform a last block by its size.

    The caller guarantees: `leaf` has 3 points.

    This function guarantees: it checks the size of `z`.
    """
    if z.size == 16:
        if shifted:
            _shift_16(z, leaf, c)
        else:
            _plain_16(z, leaf[0], c)
    elif z.size == 8:
        if shifted:
            _shift_8(z, leaf[0], c)
        else:
            _plain_8(z, c)
    elif z.size == 4:
        _combine(z, z[0] + z[2], z[0] - z[2], z[1] + z[3], z[1] - z[3])
    elif z.size == 2:
        first = z[0]
        z[0] = first + z[1]
        z[1] = first - z[1]


@in_pieces(40, parts="b", first="b")
@compiled
def split_blocks(parts: Points, first: Int, w: Points) -> None:
    """Apply a pass to blocks (B, points), numbered from `first` on.

    The caller guarantees: blocks have a power of two of points, 32 or more, and `w` a quarter as many rows.
    """
    for b in range(parts.shape[0]):
        if _is_shifted(first + b):
            _pass_shifted(parts[b], w, HALF_ROOT)
        else:
            _pass_plain(parts[b], w, HALF_ROOT)


@in_pieces(40, parts="b", first="b")
@compiled
def transform_leaves(parts: Points, first: Int, leaf: Points) -> None:
    """Apply the last pass to blocks (B, at most 16), numbered from `first` on.

    The caller guarantees: `leaf` = leaf_turns(), blocks have 1, 2, 4, 8 or 16 points.
    """
    for b in range(parts.shape[0]):
        _leaf(parts[b], _is_shifted(first + b), leaf, HALF_ROOT)


@in_steps(lambda z: 16 * z.size)
@compiled
def unscramble(z: Points) -> None:
    """Swap every point with the one whose number has the same bits in reverse.

    The caller guarantees: z.size is a power of two.
    """
    half = 0
    while z.size >> (2 * half + 2) > 0:
        half += 1
    reverse = np.zeros(1 << half, np.int64)
    for bit in range(half):
        reverse[1 << bit : 2 << bit] = reverse[: 1 << bit] + (1 << (half - 1 - bit))
    step = max(1, (1 << 20) >> half)
    for start in range(0, (1 << half) - 1, step):
        _swap(z, reverse, half, start, min(start + step, 1 << half))


@compiled
def _swap(z: Points, reverse: Any, half: Int, start: Int, stop: Int) -> None:
    """Swap the points whose numbers begin with `start` to `stop` and precede the ones they are swapped with.

    A number is `half` bits, at most one bit in the middle, and `half` bits. With its bits reversed, its first bits are
    its last ones in reverse, so that the first bits of both numbers decide which one precedes.

    The caller guarantees: z.size is 4**half or twice as much, 0 <= `start` <= `stop` <= 2**half, and `reverse` holds
    numbers of `half` bits with their bits in reverse.
    """
    count, spread = 1 << half, z.size >> half
    for first in range(start, stop):
        for other in range(first + 1, count):
            i, j = first * spread + reverse[other], other * spread + reverse[first]
            for _ in range(spread >> half):  # the bit in the middle, if there is one
                point = z[i]
                z[i] = z[j]
                z[j] = point
                i, j = i + count, j + count


@in_steps(lambda z, w, leaf: 40 * z.size)
@compiled
def transform(z: Points, w: Points, leaf: Points) -> None:
    """Transform z in place, contiguous; `w` = turns(z.size), `leaf` = leaf_turns(). Source: cftfsub.

    The caller guarantees: z.size is a power of two, and `w` has the rows that turns() gives for it.
    """
    size, row = z.size, 0
    while size > 16:
        split_blocks(z.reshape(-1, size), 0, w[row : row + size // 4])
        row += size // 4
        size //= 4
    transform_leaves(z.reshape(-1, size), 0, leaf)
    unscramble(z)


@in_pieces(4, v="e", first="e")
@compiled
def _untangle(v: Points, first: Int, z: Points) -> None:
    """Turn frequencies of pairs, from `first` on, with their mirror images, into frequencies of the reals.

    The caller guarantees: `first` >= 1 and `first` + v.size <= z.size / 2.
    """
    for k in range(v.size):
        e = first + k
        mirror = z.size - e
        y = v[k] * (z[e] - conjugate(z[mirror]))
        z[e] -= y
        z[mirror] += conjugate(y)


@in_steps(lambda z, w, leaf, v: 40 * z.size)
@compiled
def transform_reals(z: Points, w: Points, leaf: Points, v: Points) -> None:
    """Transform 2 * z.size reals, given in pairs, in place; `v` = real_turns(2 * z.size).

    Frequency 0 then holds the real values of frequencies 0 and z.size. Source: rdft with isgn 1, rftfsub.

    The caller guarantees: z.size is a power of two, and the tables are those of that size.
    """
    transform(z, w, leaf)
    _untangle(v[: max(z.size // 2 - 1, 0)], 1, z)
    z[0] = complex(z[0].real + z[0].imag, z[0].real - z[0].imag)


def transform_rows(z: Points, w: Points, leaf: Points, v: Points) -> None:
    """Transform every row of z (R, points + 1) as reals, in place; the last column is left alone."""
    if z.shape[1] <= most(40):
        _transform_rows(z, w, leaf, v)
        return
    for row in z:
        transform_reals(row[:-1], w, leaf, v)


@in_pieces(40, z="r")
@compiled
def _transform_rows(z: Points, w: Points, leaf: Points, v: Points) -> None:
    """Transform every row as reals.

    The caller guarantees: rows have a power of two of points and one element more; `w` and `v` fit them.
    """
    for row in range(z.shape[0]):
        transform_reals(z[row, : z.shape[1] - 1], w, leaf, v)


def transform_columns(z: Points, columns: int, w: Points, leaf: Points) -> None:
    """Transform the first `columns` columns of z, in place."""
    column = np.empty(z.shape[0], np.complex128)
    if column.size <= most(40):
        _transform_columns(np.arange(columns), z, column, w, leaf)
        return
    for i in range(columns):
        column[:] = z[:, i]
        transform(column, w, leaf)
        z[:, i] = column


@in_pieces(lambda columns, z, *_: 40 * columns.size * z.shape[0], columns="c")
@compiled
def _transform_columns(columns: Array, z: Points, column: Points, w: Points, leaf: Points) -> None:
    """Transform the columns with those numbers; `column` is room for one.

    The caller guarantees: `columns` are numbers of columns of z, `column` is as long as one, a power of two.
    """
    for i in columns:
        column[:] = z[:, i]
        transform(column, w, leaf)
        z[:, i] = column


@compiled
def transform_image(z: Points, column: Points, rows: Points, reals: Points, columns: Points, leaf: Points) -> None:
    """Transform all rows of z (H, points + 1) as reals, then all columns except the last; `column` is room for one.

    Source: rdft2d.

    The caller guarantees: H and points are powers of two, `column` has H points, and the tables are those of the sizes.
    """
    points = z.shape[1] - 1
    for row in range(z.shape[0]):
        transform_reals(z[row, :points], rows, leaf, reals)
    for i in range(points):
        for row in range(column.size):
            column[row] = z[row, i]
        transform(column, columns, leaf)
        for row in range(column.size):
            z[row, i] = column[row]
