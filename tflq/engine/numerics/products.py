"""Exact integer products by BLAS, and float32 sums in lanes.

Few rows of codes times the rows of an 8-bit matrix that is left where it lies, such as in a mapped file.

With few rows, a product takes as long as reading the matrix: another layout makes it no faster, and takes memory.

Exact sums of integer products, computed by BLAS.

A floating-point sum of integers is exact, in any order and with or without fused multiply-add, as long as the sum of
every subset of its terms fits the significand. So the bound is taken over subsets: for x in [low, high], the products
of one output column that can be positive, added up, and those that can be negative. If a column exceeds the bound, K is
cut into runs that do not, and their sums are added as integers. The choice is made once, from the weights and the range
of x. docs/numerics.md has the proof.

A contraction returns the true integer, not yet wrapped to an accumulator's width. Every output stage wraps (addition is
the same modulo 2**32 whenever that is done), and `accumulators_int32` does it where no stage follows.

Float32 sums in four lanes: LiteRT's NEON helpers, which its x86 build runs through SSE in every resolver.

Lane i adds the elements 4k + i in order; the lanes are then added from left to right, and the remaining elements follow
in order. Every product and every sum is rounded; nothing is fused.

Source: LiteRT 2.3 optimized/neon_tensor_utils.cc, without __aarch64__.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces, matmul, ranges
from tflq.engine.numerics.eigen import add_row
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


Range = tuple[int, int]

#: All integers up to this magnitude are exact.
EXACT_FLOAT32 = 2**24
EXACT_FLOAT64 = 2**53

#: Shorter float32 runs than this lose against one float64 product.
_SHORTEST_RUN = 96
#: Bytes of rows and accumulators that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 20
#: Bytes of rows and accumulators of one block, however wide they are.
_BLOCK_BYTES = 1 << 24
#: Units of work of an element of a matrix that is searched: a piece has a million elements, and small temporary arrays.
_EACH = 1 << 6
#: BLAS packs the matrix again for every block: with fewer rows that shows.
_FEWEST_ROWS = 192


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """Rows of integers times one constant matrix: (R, K) -> (R, N), exact."""

    real: np.dtype[Any]  # type in which rows are given: float32 or float64
    runs: tuple[slice, ...]  # of k
    matrices: tuple[Array, ...]  # (k of the run, N) each, of type `real`
    accumulator: np.dtype[Any]  # type of the result: `real` for a single run, else int32 or int64
    shape: tuple[int, int]  # (K, N)

    @classmethod
    def of(cls, weights: Array, x: Range) -> Contraction:
        """Prepare `weights` (K, N), centred, of at most 16 bits, for rows whose values lie in `x` = (low, high)."""
        matrix = np.ascontiguousarray(weights, dtype=np.float32)
        runs, bounds = _runs(matrix, x, EXACT_FLOAT32)
        if max(bounds) > EXACT_FLOAT32 or (len(runs) > 1 and len(matrix) < _SHORTEST_RUN * len(runs)):
            matrix = matrix.astype(np.float64)
            runs, bounds = _runs(matrix, x, EXACT_FLOAT64)
        summed = np.dtype(np.int32) if sum(bounds) < 2**31 else np.dtype(np.int64)
        return cls(
            real=matrix.dtype,
            runs=runs,
            matrices=tuple(matrix[run] for run in runs),
            accumulator=matrix.dtype if len(runs) == 1 else summed,
            shape=(matrix.shape[0], matrix.shape[1]),
        )

    @property
    def block_rows(self) -> int:
        """The number of rows that keep rows and accumulators of one block in cache, yet outweigh packing the matrix."""
        row = self.real.itemsize * max(1, sum(self.shape))
        return max(1, min(max(_FEWEST_ROWS, _CACHE_BYTES // row), _BLOCK_BYTES // row))

    def __call__(self, rows: Array, out: Array | None = None) -> Array:
        """Return accumulators (R, N) of `rows` (R, K), of type `real`, unit stride along K. `out` is of type
        `accumulator`.
        """
        if out is None:
            out = np.empty((rows.shape[0], self.shape[1]), self.accumulator)
        if len(self.runs) == 1:
            return matmul(rows, self.matrices[0], out)
        out.fill(0)
        part = np.empty(out.shape, self.real)
        for run, matrix in zip(self.runs, self.matrices, strict=True):
            _add_part(matmul(rows[:, run], matrix, part), out)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class PairContraction:
    """Two operands of which neither is constant: (..., R, K) times (..., K, N), exact."""

    real: np.dtype[Any]  # type in which both operands are given
    runs: tuple[slice, ...]  # of k
    accumulator: np.dtype[Any]  # type of the result: `real` for a single run, else int64

    @classmethod
    def of(cls, length: int, x: Range, y: Range) -> PairContraction:
        """Prepare sums of `length` products of values in `x` and `y` = (low, high), centred."""
        largest = max(1, max(abs(a * b) for a in x for b in y))
        fits = length * largest <= EXACT_FLOAT32 or largest * _SHORTEST_RUN <= EXACT_FLOAT32
        real, limit = (np.dtype(np.float32), EXACT_FLOAT32) if fits else (np.dtype(np.float64), EXACT_FLOAT64)
        step = limit // largest
        runs = tuple(slice(k, min(k + step, length)) for k in range(0, max(length, 1), step))
        return cls(real, runs, real if len(runs) == 1 else np.dtype(np.int64))

    def __call__(self, x: Array, y: Array) -> Array:
        """Return accumulators (..., R, N); leading dimensions broadcast."""
        if len(self.runs) == 1:
            return matmul(x, y)
        total: Array = matmul(x[..., self.runs[0]], y[..., self.runs[0], :]).astype(np.int64)
        for run in self.runs[1:]:
            total += matmul(x[..., run], y[..., run, :]).astype(np.int64)
        return total


def accumulators_int32(accumulators: Array) -> NDArray[np.int32]:
    """Return true sums as an int32 register that wraps on the way to them holds them."""
    return accumulators.astype(np.int64).astype(np.int32)


def centred_range(codes: Range, zero_point: int) -> Range:
    """Return the range of code - zero point, for codes in `codes` = (low, high)."""
    return codes[0] - zero_point, codes[1] - zero_point


@in_pieces(codes="r", out="r")
@compiled
def centre_into(codes: Array, zero_point: Int, out: Array) -> None:
    """Compute out = codes - zero point, as floats. Both 1-D or raveled views of the same size, contiguous.

    The caller guarantees: `codes` and `out` have the same size.
    """
    for i in range(codes.size):
        out[i] = np.float32(np.int32(codes[i]) - np.int32(zero_point))


def _runs(matrix: Array, x: Range, limit: int) -> tuple[tuple[slice, ...], list[int]]:
    """Return runs of k, and the largest subset sum of each: within `limit`, unless a single product is beyond it."""
    runs: list[slice] = []
    bounds: list[int] = []
    start = 0
    while start < len(matrix) or not runs:
        stop, bound = _next_cut(matrix, start, x, limit)
        runs.append(slice(start, stop))
        bounds.append(bound)
        start = stop
    return tuple(runs), bounds


def _next_cut(matrix: Array, start: int, x: Range, limit: int) -> tuple[int, int]:
    """Return the end of the longest run from `start` that keeps to `limit` (one k at least), and its largest subset
    sum.
    """
    length, columns = matrix.shape
    whole = _largest_sum(matrix[start:], x)
    if whole <= limit:
        return length, whole
    up, down = np.zeros(columns), np.zeros(columns)
    bound = 0.0
    for first, last in ranges(length - start, 4 * columns):
        at = start + first, start + last
        stop, bound = _walk(matrix, start, *at, up, down, bound, float(x[0]), float(x[1]), float(limit))
        if stop < at[1]:
            return int(stop), int(bound)
    return length, int(bound)


def _largest_sum(matrix: Array, x: Range) -> int:
    """Return the largest magnitude of a sum of some products, one of each row of a column; exact below 2**53."""
    rows, columns = matrix.shape
    up, down = np.zeros(columns), np.zeros(columns)
    for start, stop in ranges(rows, _EACH * columns):
        part = matrix[start:stop].astype(np.float64)
        first, second = part * float(x[0]), part * float(x[1])
        up += np.maximum(np.maximum(first, second), 0.0).sum(0)
        down += np.minimum(np.minimum(first, second), 0.0).sum(0)
    return int(max(up.max(initial=0.0), -down.min(initial=0.0)))


@compiled
def _walk(
    matrix: Array,
    start: Int,
    first: Int,
    last: Int,
    up: Array,
    down: Array,
    bound: Real,
    low: Real,
    high: Real,
    limit: Real,
) -> tuple[Int, Real]:
    """Return where the run from `start` has to end, searched from `first` to at most `last`, and its largest subset
    sum.

    The caller guarantees: 0 <= `first` <= `last` <= rows of `matrix`; `up` and `down` have an element for every column.
    """
    columns = matrix.shape[1]
    for k in range(first, last):
        reached = bound
        for c in range(columns):
            first, second = matrix[k, c] * low, matrix[k, c] * high
            up[c] += max(first, second, 0.0)
            down[c] -= min(first, second, 0.0)
            reached = max(reached, up[c], down[c])
        if reached > limit and k > start:
            return k, bound
        bound = reached
    return last, bound


@in_pieces(part="r", out="r")
@compiled
def _add_part(part: Array, out: Array) -> None:
    """Add a part's sums to `out`.

    The caller guarantees: `part` has the shape of `out`.
    """
    rows, columns = out.shape
    for r in range(rows):
        for c in range(columns):
            out[r, c] += np.int64(part[r, c])


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
