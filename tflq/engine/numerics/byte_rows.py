"""Few rows of codes times the rows of an 8-bit matrix that is left where it lies, such as in a mapped file.

With few rows, a product takes as long as reading the matrix: another layout makes it no faster, and takes memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.typing import Array

Ints8 = NDArray[np.int8]

#: Elements of a matrix, and rows of codes, from and up to which `in_place` is the best way.
LARGE, FEW = 1 << 22, 4


def suits(weights: Array, rows: int) -> bool:
    """Return whether `in_place` is the best way for a number of rows."""
    return weights.size >= LARGE and rows <= FEW


def in_place(codes: Array, weights: Ints8, losing: int = 0) -> NDArray[np.int32]:
    """Return the sums (R, N), int32, of `codes` (R, K), int16, contiguous, times `weights` (N, K); see row_product."""
    sums = np.empty((len(weights), len(codes)), np.int32)
    _fill(weights, sums, codes, losing)
    return sums.T


@in_pieces(
    lambda weights, sums, codes, losing: weights.size * len(codes) >> 3, weights="n", sums="n", frees_threads=True
)
@compiled
def _fill(weights: Array, sums: Array, codes: Array, losing: Int) -> None:
    """Fill `sums`. The caller guarantees: `weights` is (N, K), `sums` (N, R), `codes` (R, K), `losing` at most K."""
    for n in range(sums.shape[0]):
        for r in range(sums.shape[1]):
            sums[n, r] = row_product(codes[r], weights[n], losing)


@compiled
def row_product(codes: Array, weights: Array, losing: Int) -> Int:
    """Return the int32 sum of products of two rows, wrapped. The first `losing` weights lose their sign if they are
    -128 and the code is negative: 256 times the code is added.

    The caller guarantees: `codes`, int16, and `weights`, int8, have the same length, `losing` at most that.
    """
    total = np.int32(0)
    for k in range(weights.size):
        total = np.int32(total + np.int32(np.int32(codes[k]) * np.int32(weights[k])))
    for k in range(losing):
        if weights[k] == -128:
            total = np.int32(total + np.int32(256 * min(np.int32(codes[k]), np.int32(0))))
    return total
