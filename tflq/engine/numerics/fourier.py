"""The discrete Fourier transform of fft2d (Takuya Ooura), operation by operation: every sum rounds as there.

A transform of N = 2**k points, y[f] = sum of x[j] * exp(+2*pi*i*f*j/N), in float64. Blocks are cut in quarters until 16
or 8 points are left: a *plain* block into plain, shifted, plain, plain; a *shifted* block (frequencies half a step
further) into plain, shifted, plain, shifted. Frequencies then lie bit-reversed.

Source: fft2d 1.0 fftsg.c cdft, rdft, makewt, makect (split radix); fftsg2d.c rdft2d. Factors that are 1, i or
exp(i*pi/4) have shorter forms, which round differently: each is written where it is used.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps, most
from tflq.engine.numerics.fourier_passes import conjugate, split_blocks, transform_leaves, transform_short, unscramble
from tflq.engine.numerics.fourier_turns import Points
from tflq.typing import Array

#: Points of a transform that one compiled function makes.
_SHORT = 1 << 12


@in_steps(lambda z, w, leaf: 40 * z.size)
@compiled
def transform(z: Points, w: Points, leaf: Points) -> None:
    """Transform z in place, contiguous; `w` = turns(z.size), `leaf` = leaf_turns(). Source: cftfsub.

    The caller guarantees: z.size is a power of two, and `w` has the rows that turns() gives for it.
    """
    if z.size <= _SHORT:
        transform_short(z, w, leaf)
        return
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
