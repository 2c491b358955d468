"""The passes of a Fourier transform: blocks cut in quarters, blocks of 16 and 8 points, the order of the frequencies.

A *plain* block becomes plain, shifted, plain, plain; a *shifted* block plain, shifted, plain, shifted (see fourier.py).
Source: fft2d 1.0 fftsg.c. Factors that are 1, i or exp(i*pi/4) have shorter forms, which round differently: each is
written where it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps
from tflq.engine.numerics.fourier_turns import EVEN_1, EVEN_3, HALF_ROOT, ODD_1, ODD_3, PLAIN_1, PLAIN_3, Points

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
        _swap(z, reverse, 0, half, start, min(start + step, 1 << half))


#: Numbers of six bits with their bits in reverse.
_REVERSED = np.array([sum(1 << (5 - bit) for bit in range(6) if number >> bit & 1) for number in range(64)], np.int64)


@compiled
def _swap_few(z: Points) -> None:
    """Do what `unscramble` does with at most 8192 points.

    The caller guarantees: z.size is a power of two.
    """
    half = 0
    while z.size >> (2 * half + 2) > 0:
        half += 1
    _swap(z, _REVERSED, 6 - half, half, 0, 1 << half)


@compiled
def _swap(z: Points, reverse: Any, shift: Int, half: Int, start: Int, stop: Int) -> None:
    """Swap the points whose numbers begin with `start` to `stop` and precede the ones they are swapped with.

    A number is `half` bits, at most one bit in the middle, and `half` bits. With its bits reversed, its first bits are
    its last ones in reverse, so that the first bits of both numbers decide which one precedes.

    The caller guarantees: z.size is 4**half or twice as much, 0 <= `start` <= `stop` <= 2**half, and `reverse` holds
    numbers of `half` + `shift` bits with their bits in reverse.
    """
    count, spread = 1 << half, z.size >> half
    for first in range(start, stop):
        for other in range(first + 1, count):
            i, j = first * spread + (reverse[other] >> shift), other * spread + (reverse[first] >> shift)
            for _ in range(spread >> half):  # the bit in the middle, if there is one
                point = z[i]
                z[i] = z[j]
                z[j] = point
                i, j = i + count, j + count


@compiled
def transform_short(z: Points, w: Points, leaf: Points) -> None:
    """Transform all points of z in place: the passes, the leaves and the order.

    The caller guarantees: z.size is a power of two, at most 8192, `w` = turns(z.size), `leaf` = leaf_turns().
    """
    size, row = z.size, 0
    while size > 16:
        table = w[row : row + size // 4]
        for b in range(z.size // size):
            part = z[b * size : (b + 1) * size]
            if _is_shifted(b):
                _pass_shifted(part, table, HALF_ROOT)
            else:
                _pass_plain(part, table, HALF_ROOT)
        row += size // 4
        size //= 4
    for b in range(z.size // size):
        _leaf(z[b * size : (b + 1) * size], _is_shifted(b), leaf, HALF_ROOT)
    _swap_few(z)
