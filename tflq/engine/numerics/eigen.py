"""Float32 matrix products in the order in which Eigen computes them on x86 with SSE.

LiteRT's recurrent operators call Eigen even in the reference resolver. A product's partial sums depend on its sizes
and, beyond a depth of 680, on the first-level cache: four lanes, every product and sum rounded, no fused multiply-add.
Source: Eigen 5 (LiteRT 2.3): GeneralProduct.h, products/GeneralMatrixVector.h, GeneralBlockPanelKernel.h, Redux.h,
InnerProduct.h; LiteRT 2.3 cpu_backend_gemm_eigen.cc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces

Floats = NDArray[np.float32]
Dot = Callable[[Floats, Floats, Floats], None]

#: Products whose depth, rows and columns add up to less are computed coefficient by coefficient.
_COEFFICIENT_BASED = 20
#: Products of which no size is as large as this are not blocked.
_UNBLOCKED = 48
#: Bytes of the first-level data cache of most processors before 2019, and of AArch64 as Eigen assumes it.
FIRST_LEVEL_CACHE = 32 << 10


def product(columns: Floats, x: Floats, dot: Dot | None = None, cache: int = FIRST_LEVEL_CACHE) -> Floats:
    """Multiply x (B, K) by `columns` (K, N), the weights transposed: (B, N). Both are C-contiguous.

    `dot` computes the product of one row and one column; the default is Eigen 5's. `cache` is the size in bytes of the
    first-level data cache that Eigen finds: it decides the order of sums of more products than `panel_limit`. Source:
    GemmImplUsingEigen::Run, bias and clamp left out.
    """
    depth, units = columns.shape
    rows = x.shape[0]
    out = np.zeros((rows, units), np.float32)
    if not (out.size and depth):
        return out
    if rows == 1 and units == 1:
        (dot or _inner_product)(columns, x, out)
    elif rows == 1 or units == 1:
        matrix_vector(columns, x, out)
    elif depth + units + rows < _COEFFICIENT_BASED:
        coefficients(columns, x, out)
    else:
        _block(columns, x, _depth_block(depth, units, rows, cache), out)
    return out


def ordered_block(depth: int, units: int, rows: int, cache: int) -> int:
    """Return how many k such a product sums in order before it sums the sums in order; 0 if it has another order."""
    is_blocked = rows > 1 and units > 1 and depth > 0 and depth + units + rows >= _COEFFICIENT_BASED
    return _depth_block(depth, units, rows, cache) if is_blocked and units % 8 == 0 else 0


def panel_limit(cache: int) -> int:
    """Return the largest k of one panel. Source: evaluateProductBlockingSizesHeuristic (mr 8, nr 4, one thread)."""
    return max(((cache - 8 * 4 * 4) // (8 * 4 + 4 * 4)) & ~7, 1)


def _depth_block(depth: int, units: int, rows: int, cache: int) -> int:
    """Return the number of k that go into one panel. Source: as `panel_limit`."""
    if max(depth, units, rows) < _UNBLOCKED:
        return depth
    largest = panel_limit(cache)
    if depth <= largest:
        return depth
    rest = depth % largest
    return largest if rest == 0 else largest - 8 * ((largest - 1 - rest) // (8 * (depth // largest + 1)))


@compiled
def across(a: Real, b: Real, c: Real, d: Real) -> Real:
    """Return the sum of four lanes: (a + c) + (b + d). Source: predux<Packet4f>."""
    return (a + c) + (b + d)


@compiled
def add_row(row: Floats, factor: Real, out: Floats) -> None:
    """Add row * factor to `out`, both 1-D.

    The caller guarantees: `row` has the size of `out`.
    """
    for n in range(out.size):
        out[n] += row[n] * factor


@in_pieces(lambda columns, x, out: x.size * out.shape[1], x="r", out="r")
@compiled
def matrix_vector(columns: Floats, x: Floats, out: Floats) -> None:
    """Multiply where one side has a single row: lanes over k, then across, then the rest of k in order.

    The caller guarantees: `columns` is (K, N), `x` (B, K), `out` (B, N), and K > 0.
    """
    depth, units = columns.shape
    lanes = np.empty((4, units), np.float32)
    for b in range(x.shape[0]):
        lanes[:] = 0
        for k in range(depth & ~3):
            add_row(columns[k], x[b, k], lanes[k & 3])
        for n in range(units):
            out[b, n] = across(lanes[0, n], lanes[1, n], lanes[2, n], lanes[3, n])
        for k in range(depth & ~3, depth):
            add_row(columns[k], x[b, k], out[b])
        for n in range(units):
            out[b, n] = np.float32(0) + out[b, n]


@in_pieces(lambda columns, x, out: x.size * out.shape[1], x="r", out="r")
@compiled
def coefficients(columns: Floats, x: Floats, out: Floats) -> None:
    """Compute each coefficient by itself: packets in two alternating accumulators. Source: redux_impl (linear,
    vectorized).

    The caller guarantees: `columns` is (K, N), `x` (B, K), `out` (B, N), and K > 0.
    """
    depth, units = columns.shape
    packets = depth & ~3
    pairs = depth & ~7
    lanes = np.zeros((2, 4), np.float32)
    for b in range(x.shape[0]):
        for n in range(units):
            if packets == 0:
                total = columns[0, n] * x[b, 0]
                for k in range(1, depth):
                    total += columns[k, n] * x[b, k]
                out[b, n] = total
                continue
            for i in range(4):
                lanes[0, i] = columns[i, n] * x[b, i]
            if packets > 4:
                for i in range(4):
                    lanes[1, i] = columns[4 + i, n] * x[b, 4 + i]
                for k in range(8, pairs, 4):
                    for i in range(4):
                        lanes[(k >> 2) & 1, i] += columns[k + i, n] * x[b, k + i]
                for i in range(4):
                    lanes[0, i] += lanes[1, i]
                if packets > pairs:
                    for i in range(4):
                        lanes[0, i] += columns[pairs + i, n] * x[b, pairs + i]
            total = across(lanes[0, 0], lanes[0, 1], lanes[0, 2], lanes[0, 3])
            for k in range(packets, depth):
                total += columns[k, n] * x[b, k]
            out[b, n] = total


@compiled
def _inner_product(columns: Floats, x: Floats, out: Floats) -> None:
    """Multiply one row by one row: packets in four alternating accumulators. Source: inner_product_impl.

    The caller guarantees: `columns` is (K, 1), `x` (1, K), `out` (1, 1), and K > 0.
    """
    depth = columns.shape[0]
    packets = depth >> 2
    if packets == 0:
        total = columns[0, 0] * x[0, 0]
        for k in range(1, depth):
            total = columns[k, 0] * x[0, k] + total
        out[0, 0] = np.float32(0) + total
        return
    lanes = np.zeros((4, 4), np.float32)
    for p in range(packets):
        for i in range(4):
            value = columns[4 * p + i, 0] * x[0, 4 * p + i]
            lanes[p & 3, i] = value if p < 4 else value + lanes[p & 3, i]
    for i in range(4):
        if packets >= 4:
            lanes[2, i] += lanes[3, i]
        if packets >= 3:
            lanes[1, i] += lanes[2, i]
        if packets >= 2:
            lanes[0, i] += lanes[1, i]
    total = across(lanes[0, 0], lanes[0, 1], lanes[0, 2], lanes[0, 3])
    for k in range(4 * packets, depth):
        total = columns[k, 0] * x[0, k] + total
    out[0, 0] = np.float32(0) + total


@in_pieces(lambda columns, x, block, out: x.size * out.shape[1], x="r", out="r", step=4)
@compiled
def _block(columns: Floats, x: Floats, block: Int, out: Floats) -> None:
    """Add up panels of `block` k in `out`. Units are in groups of 8, of 4, then alone; rows of x in groups of 4.

    Within a panel a sum runs over k in order. The exception is a unit in a group of 4, or alone, that meets a whole
    group of rows: it uses two or four accumulators. Source: gebp_kernel.

    The caller guarantees: `columns` is (K, N), `x` (B, K), `out` (B, N), and K > 0.
    """
    depth, units = columns.shape
    rows = x.shape[0]
    panel = np.empty(units, np.float32)
    for first in range(0, depth, block):
        last = min(first + block, depth)
        for b in range(rows):
            ordered = units & ~7 if b < rows & ~3 else units
            panel[:ordered] = 0
            for k in range(first, last):
                add_row(columns[k, :ordered], x[b, k], panel[:ordered])
            for n in range(ordered, units):
                if n < units & ~3:
                    panel[n] = _even_and_odd(columns[:, n], x[b], first, last)
                else:
                    panel[n] = _by_four(columns[:, n], x[b], first, last)
            for n in range(units):
                out[b, n] += panel[n]


@compiled
def _even_and_odd(w: Floats, x: Floats, first: Int, last: Int) -> Real:
    """Return the product summed over even and odd k apart in whole groups of eight, then over the rest in order.

    The caller guarantees: `first` to `last` are places of `w` and `x`.
    """
    even = np.float32(0)
    odd = np.float32(0)
    whole = first + ((last - first) & ~7)
    for k in range(first, whole, 2):
        even += w[k] * x[k]
        odd += w[k + 1] * x[k + 1]
    total = even + odd
    for k in range(whole, last):
        total += w[k] * x[k]
    return total


@compiled
def _by_four(w: Floats, x: Floats, first: Int, last: Int) -> Real:
    """Return the product summed over k modulo 4 apart in whole groups of four, then over the rest in order.

    The caller guarantees: `first` to `last` are places of `w` and `x`.
    """
    c0 = np.float32(0)
    c1 = np.float32(0)
    c2 = np.float32(0)
    c3 = np.float32(0)
    whole = first + ((last - first) & ~3)
    for k in range(first, whole, 4):
        c0 += w[k] * x[k]
        c1 += w[k + 1] * x[k + 1]
        c2 += w[k + 2] * x[k + 2]
        c3 += w[k + 3] * x[k + 3]
    total = (c0 + c1) + (c2 + c3)
    for k in range(whole, last):
        total += w[k] * x[k]
    return total


def row_sums(x: Floats) -> Floats:
    """Return the sum of each row of x (R, N), C-contiguous and from a 16-byte boundary on: (R,).

    Source: redux_impl (linear, vectorized) of a column: whole aligned packets, then what lies before and behind them.
    """
    out = np.zeros(x.shape[0], np.float32)
    if x.size:
        _row_sums_into(x, out)
    return out


@in_pieces(x="r", out="r", step=4)
@compiled
def _row_sums_into(x: Floats, out: Floats) -> None:
    """Write the sum of each row to `out`.

    The caller guarantees: `out` has an element for every row of `x`, none of which is empty.
    """
    rows, depth = x.shape
    lanes = np.empty((2, 4), np.float32)
    for r in range(rows):
        row = x[r]
        first = min(-(r * depth) & 3, depth)
        packets = (depth - first) & ~3
        pairs = (depth - first) & ~7
        if packets == 0:
            total = row[0]
            for k in range(1, depth):
                total += row[k]
            out[r] = total
            continue
        lanes[0] = row[first : first + 4]
        if packets > 4:
            lanes[1] = row[first + 4 : first + 8]
            for k in range(8, pairs, 4):
                for i in range(4):
                    lanes[(k >> 2) & 1, i] += row[first + k + i]
            for i in range(4):
                lanes[0, i] += lanes[1, i]
            if packets > pairs:
                for i in range(4):
                    lanes[0, i] += row[first + pairs + i]
        total = across(lanes[0, 0], lanes[0, 1], lanes[0, 2], lanes[0, 3])
        for k in range(first):
            total += row[k]
        for k in range(first + packets, depth):
            total += row[k]
        out[r] = total
