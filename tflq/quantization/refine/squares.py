"""Sums of products of rows, in float32 within blocks of rows and in float64 over blocks.

A block has ROWS rows. If rows are codes minus their zero point (8 bits: magnitudes up to 255), a block's sums are
integers up to 256 * 255^2 < 2^24: exact in any order of addition. Otherwise a block's sum is off by at most ROWS *
2^-24 (1.6e-5) of the sum of the magnitudes of its terms, to first order (Higham 2002, "Accuracy and stability of
numerical algorithms", section 3.1). Adding blocks in float64 adds no further error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.quantization.refine.products import MatrixProduct
from tflq.typing import Array

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]

#: Rows whose products are added in float32.
ROWS = 256
#: Channels of a depthwise operator that are processed together: their sums stay in the first-level cache.
_LANES = 64


def row_products(product: MatrixProduct, left: Floats, right: Floats) -> Reals:
    """Return the sum over rows of left_row right_row^T, [G, K, K], of two inputs of an operator."""
    total = np.zeros((product.groups, product.inputs, product.inputs))
    same = left is right
    for a, b in zip(product.blocks(left), product.blocks(right), strict=True):
        if product.groups == 1:
            _dense(a, a if same else b, total[0])
        elif product.depthwise:
            _depthwise(a, a if same else b, product.taps, same, total)
        else:
            _group(product, a, a if same else b, total)
    return total


def _dense(a: Floats, b: Floats, total: Reals) -> None:
    """Add to `total` [K, K], block by block."""
    for first in range(0, len(a), ROWS):
        total += a[first : first + ROWS].T @ b[first : first + ROWS]


def _group(product: MatrixProduct, a: Floats, b: Floats, total: Reals) -> None:
    """Add to `total` [G, K, K]; rows [N, taps, G, C / G] are sorted by group first."""
    shape = (ROWS, product.taps, product.groups, -1)
    for first in range(0, len(a), ROWS):
        parts = [x[first : first + ROWS] for x in (a, b)]
        left, right = (
            x.reshape(len(x), *shape[1:]).transpose(2, 0, 1, 3).reshape(product.groups, len(x), -1) for x in parts
        )
        total += left.transpose(0, 2, 1) @ right


def _depthwise(a: Floats, b: Floats, taps: int, same: bool, total: Reals) -> None:
    """Add to `total` [G, taps, taps]; rows are [N, taps * G]."""
    sums = np.zeros((taps, taps, total.shape[0]))
    _tap_products_into(a, b, taps, same, sums)
    if same:
        lower = np.tril(np.ones((taps, taps)), -1)[:, :, None] * sums
        sums += lower.transpose(1, 0, 2)
    total += sums.transpose(2, 0, 1)


@compiled
def _tap_products_into(left: Array, right: Array, taps: Int, lower: bool, total: Array) -> None:
    """Compute total[i, j, c] += sum over rows r of left[r, i, c] * right[r, j, c]; with `lower` only for j <= i.

    The caller guarantees: `left` and `right` are (rows, taps * channels) and `total` is (taps, taps, channels).
    """
    rows, channels = left.shape[0], left.shape[1] // taps
    part = np.zeros((taps, taps, _LANES), np.float32)
    for start in range(0, channels, _LANES):
        lanes = min(_LANES, channels - start)
        for first in range(0, rows, ROWS):
            part[:] = 0
            for r in range(first, min(first + ROWS, rows)):
                for i in range(taps):
                    a = left[r, i * channels + start : i * channels + start + lanes]
                    for j in range(i + 1 if lower else taps):
                        b = right[r, j * channels + start : j * channels + start + lanes]
                        sums = part[i, j]
                        for c in range(lanes):
                            sums[c] += a[c] * b[c]
            for i in range(taps):
                for j in range(taps):
                    for c in range(lanes):
                        total[i, j, start + c] += part[i, j, c]
