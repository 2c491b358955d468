"""Float32 sums in four lanes: LiteRT's NEON helpers, which its x86 build runs through SSE in every resolver.

Lane i adds the elements 4k + i in order; the lanes are then added from left to right, and the remaining elements follow
in order. Every product and every sum is rounded; nothing is fused.

Source: LiteRT 2.3 optimized/neon_tensor_utils.cc, without __aarch64__.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.eigen import add_row

Floats = NDArray[np.float32]


@in_pieces(lambda columns, x, out: x.size * out.shape[1], x="r", out="r")
@compiled
def add_products(columns: Floats, x: Floats, out: Floats) -> None:
    """Add x (B, K) times `columns` (K, N), the weights transposed, to `out` (B, N).

    The rest of K is added to `out` one by one. Source: NeonMatrixBatchVectorMultiplyAccumulate (float).

    The caller guarantees: these shapes.
    """
    depth, units = columns.shape
    lanes = np.empty((4, units), np.float32)
    for b in range(x.shape[0]):
        lanes[:] = 0
        for k in range(depth & ~3):
            add_row(columns[k], x[b, k], lanes[k & 3])
        for n in range(units):
            out[b, n] += ((lanes[0, n] + lanes[1, n]) + lanes[2, n]) + lanes[3, n]
        for k in range(depth & ~3, depth):
            add_row(columns[k], x[b, k], out[b])


@in_pieces(a="r", b="r", out="r")
@compiled
def dot_rows(a: Floats, b: Floats, out: Floats) -> None:
    """Compute out[r] = a[r] . b[r], both (R, K). Source: BatchVectorBatchVectorDotProduct, NeonVectorVectorDotProduct.

    The caller guarantees: these shapes, and that `out` is (R).
    """
    rows, depth = a.shape
    whole = depth & ~3
    for r in range(rows):
        l0 = np.float32(0)
        l1 = np.float32(0)
        l2 = np.float32(0)
        l3 = np.float32(0)
        for k in range(0, whole, 4):
            l0 += a[r, k] * b[r, k]
            l1 += a[r, k + 1] * b[r, k + 1]
            l2 += a[r, k + 2] * b[r, k + 2]
            l3 += a[r, k + 3] * b[r, k + 3]
        total = ((l0 + l1) + l2) + l3
        for k in range(whole, depth):
            total += a[r, k] * b[r, k]
        out[r] = total


@compiled
def sum_groups(x: Floats, size: Int, out: Floats) -> None:
    """Compute out[i] = the sum of the i-th group of `size` elements. Source: NeonReductionSumVector (float).

    The caller guarantees: `x` has out.size * `size` elements.
    """
    whole = size & ~3
    for i in range(out.size):
        first = i * size
        l0 = np.float32(0)
        l1 = np.float32(0)
        l2 = np.float32(0)
        l3 = np.float32(0)
        for k in range(first, first + whole, 4):
            l0 += x[k]
            l1 += x[k + 1]
            l2 += x[k + 2]
            l3 += x[k + 3]
        total = ((l0 + l1) + l2) + l3
        for k in range(first + whole, first + size):
            total += x[k]
        out[i] = total


@compiled
def holds_zeros(x: Floats) -> bool:
    """Return `is_zero` of rows (B, K).

    This function guarantees: all indices come from the shape of `x`.
    """
    rows, depth = x.shape
    for b in range(rows):
        for k in range(depth):
            if abs(x[b, k]) > 0:
                return False
    nonzero = False
    for flat in range(rows * depth & ~3, rows * depth):
        nonzero |= x[flat // depth, flat % depth] != 0
    return not nonzero


def is_zero(x: Floats) -> bool:
    """Return whether all elements are zero. NaN counts as zero in whole groups of four. Source: NeonIsZeroVector."""
    flat = x.reshape(-1)
    whole = flat.size & ~3
    return not (np.any(np.abs(flat[:whole]) > 0) or np.any(flat[whole:] != 0))
