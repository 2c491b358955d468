"""Float activations against 8-bit weights: rows quantized on the way, exact integer products, one scale at the end.

LiteRT's x86 build computes this way in every resolver: NEON helpers through SSE for the quantization, SSE helpers for
the products.

Source: LiteRT 2.3 optimized/neon_tensor_utils.cc NeonSymmetricQuantizeFloats, NeonAsymmetricQuantizeFloats;
optimized/sse_tensor_utils.cc SseMatrixBatchVectorMultiplyAccumulateImpl, SseReductionSumVector, as compiled with SSE4.1
and without AVX2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.mapped import release
from tflq.engine.jit.pieces import in_pieces, matmul
from tflq.engine.numerics.byte_rows import in_place, row_product, suits
from tflq.engine.numerics.contract import Contraction, accumulators_int32
from tflq.engine.numerics.lanes import holds_zeros
from tflq.engine.numerics.rounding import INT32_MAX, float_to_int32, round_half_away, wrap_int32
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Elements of weights that are widened at a time.
_BLOCK = 1 << 20

Floats = NDArray[np.float32]
Ints8 = NDArray[np.int8]
Ints32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Quantized rows: x[b] = scale[b] * (codes[b] - zero_point[b])."""

    codes: Ints8  # (B, K)
    scale: Floats  # (B,)
    zero_point: Ints32  # (B,); zeros if quantized symmetrically

    @property
    def is_centred(self) -> bool:
        """True if every zero point is 0."""
        return not self.zero_point.any()


def quantize_rows(x: Floats, asymmetric: bool) -> Rows:
    """Quantize each row of `x` (B, K) by itself. Raises UndefinedResultError for NaN and infinities.

    The original converts the results of NaN and infinities to integers, which is undefined, and its groups of four and
    its single elements order NaN differently.

    Source: BatchQuantizeFloats.
    """
    if not np.isfinite(x).all():
        raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")
    rows = Rows(np.empty(x.shape, np.int8), np.empty(len(x), np.float32), np.zeros(len(x), np.int32))
    source = np.ascontiguousarray(x)
    if asymmetric:
        _quantize_asymmetric(source, rows.codes, rows.scale, rows.zero_point)
    else:
        _quantize_symmetric(source, rows.codes, rows.scale)
    return rows


@compiled
def round_in_float32(x: Real) -> Int:
    """Return trunc(x + 1/2), or trunc(x - 1/2) below 0, with the sum rounded to float32: the helper's round to nearest.

    The largest float32 below 1/2 gives 1. Values that are too large give INT32_MAX, as NEON's conversion does; NaN and
    values that are too small give INT32_MIN, as x86 does.

    Source: RoundToNearest before ARMv8.
    """
    half = np.float32(-0.5) if x < np.float32(0) else np.float32(0.5)
    whole = np.trunc(np.float64(half + x))
    return np.int64(INT32_MAX) if whole >= 2147483648.0 else float_to_int32(whole)


@compiled
def saturate_int8(x: Real) -> Int:
    """Saturate an integral float to int8; NaN gives 0. The compiler's conversion and clamp to that type do the same."""
    return np.int64(0) if x != x else np.int64(min(max(x, -128.0), 127.0))


@compiled
def _largest(row: Floats) -> Real:
    """Return the largest magnitude of finite elements, 0 of none. Bits of magnitudes have their order, as integers.

    This function guarantees: all indices come from the shape of `row`.
    """
    largest = np.int32(0)
    for k in range(row.size):
        largest = max(largest, np.int32(np.float32(row[k]).view(np.int32) & np.int32(0x7FFFFFFF)))
    return np.int32(largest).view(np.float32)


@compiled
def _bounds(row: Floats) -> tuple[Real, Real]:
    """Return the smallest and the largest of 0 and all elements, which are finite. Both are +0 if they are 0.

    This function guarantees: all indices come from the shape of `row`.
    """
    high, low = np.int32(0), np.int32(0)
    for k in range(row.size):
        bits = np.float32(row[k]).view(np.int32)
        high = max(high, bits)
        low = max(low, np.int32(bits ^ np.int32(-0x80000000)))  # negative numbers turn positive, and in order
    return -np.int32(low).view(np.float32) if low > 0 else np.float32(0), np.int32(high).view(np.float32)


@compiled
def _code_groups(row: Floats, inverse: Real, zero: Int, lowest: Int, highest: Int, codes: Ints8) -> None:
    """Fill `codes` as groups of eight are rounded.

    If `inverse` is finite, products are smaller than 1000, and integers of 32 bits hold all that follows.

    The caller guarantees: `codes` has the size of `row`; products of `row` and a finite `inverse` are below 1000.
    """
    if np.isfinite(inverse):
        start, least, most = np.int32(zero), np.int32(lowest), np.int32(highest)
        for k in range(codes.size):
            real = np.float32(row[k] * inverse)
            half = np.float32(-0.5) if real < np.float32(0) else np.float32(0.5)
            codes[k] = min(max(np.int32(np.int32(np.float32(half + real)) + start), least), most)
    else:
        for k in range(codes.size):
            codes[k] = min(max(wrap_int32(round_in_float32(row[k] * inverse) + np.int64(zero)), lowest), highest)


@in_pieces(8, x="r", codes="r", scale="r")
@compiled
def _quantize_symmetric(x: Floats, codes: Ints8, scale: Floats) -> None:
    """Quantize finite rows symmetrically. Groups of eight and the rest round differently.

    The caller guarantees: `x` and `codes` are (B, K), `scale` is (B).
    """
    rows, depth = x.shape
    whole = depth & ~7
    for b in range(rows):
        largest = _largest(x[b])
        if largest == 0:
            scale[b] = np.float32(1)
            codes[b, :] = 0
            continue
        scale[b] = largest / np.float32(127)
        inverse = np.float32(127) / largest
        _code_groups(x[b, :whole], inverse, 0, -127, 127, codes[b, :whole])
        for k in range(whole, depth):
            code = float_to_int32(round_half_away(np.float64(x[b, k] * inverse)))
            codes[b, k] = min(max(code, -127), 127)


@in_pieces(8, x="r", codes="r", scale="r", zero_point="r")
@compiled
def _quantize_asymmetric(x: Floats, codes: Ints8, scale: Floats, zero_point: Ints32) -> None:
    """Quantize finite rows asymmetrically. The range includes 0; its width is a float32 difference, the zero point
    float64 arithmetic.

    The caller guarantees: `x` and `codes` are (B, K), `scale` is (B) and `zero_point` (B).
    """
    rows, depth = x.shape
    whole = depth & ~7
    for b in range(rows):
        low, high = _bounds(x[b])
        if low == high:
            scale[b] = np.float32(1)
            zero_point[b] = 0
            codes[b, :] = 0
            continue
        step = np.float64(high - low) / 255.0
        from_low = np.float64(low) / step
        from_high = np.float64(high) / step
        zero = -128.0 - from_low if 128.0 + abs(from_low) < 127.0 + abs(from_high) else 127.0 - from_high
        zero = min(max(round_half_away(zero), -128.0), 127.0)
        scale[b] = np.float32(step)
        zero_point[b] = np.int32(zero)
        inverse = np.float32(0) if scale[b] == 0 else np.float32(1.0 / np.float64(scale[b]))
        _code_groups(x[b, :whole], inverse, zero_point[b], -128, 127, codes[b, :whole])
        for k in range(whole, depth):
            codes[b, k] = saturate_int8(round_half_away(np.float64(x[b, k] * inverse)) + zero)


@compiled
def are_finite(x: Floats) -> bool:
    """Return whether all elements are finite.

    This function guarantees: all indices come from the shape of `x`.
    """
    for b in range(x.shape[0]):
        for k in range(x.shape[1]):
            if not np.isfinite(x[b, k]):
                return False
    return True


@compiled
def add_quantized(
    x: Floats, asymmetric: bool, weights: Ints8, losing: Ints32, row_sums: Ints32, scale: Floats, out: Floats
) -> None:
    """Add the rows of `x`, quantized as quantize_rows does, times ByteMatrix.integers to `out`, as
    ByteMatrix.accumulate does.

    The caller guarantees: `x` is (B, K) and finite, `weights` (N, at least K) with zeros from K on, `losing` (N),
    at most K, `row_sums` and `scale` (N), `out` (B, N).
    """
    rows, depth = x.shape
    codes, scales = np.empty((rows, weights.shape[1]), np.int16), np.empty(rows, np.float32)
    zero_points = np.zeros(rows, np.int32)
    codes[:, depth:] = 0
    if asymmetric:
        _quantize_asymmetric(x, codes[:, :depth], scales, zero_points)
    else:
        _quantize_symmetric(x, codes[:, :depth], scales)
    for n in range(out.shape[1]):
        for b in range(rows):
            total = row_product(codes[b], weights[n], losing[n]) - zero_points[b] * row_sums[n]
            out[b, n] += np.float32(np.int32(total)) * (scales[b] * scale[n])


@compiled
def add_defined(x: Floats, asymmetric: bool, matrix: Any, out: Floats) -> bool:
    """Do what add_quantized does, unless all of `x` is zero. Return False if it holds NaN or an infinity.

    The caller guarantees: `matrix` is that of ByteMatrix.integers, and these shapes.
    """
    if holds_zeros(x):
        return True
    if not are_finite(x):
        return False
    add_quantized(x, asymmetric, matrix[0], matrix[1], matrix[2], matrix[3], out)
    return True


Integers = tuple[Ints8, Ints32, Ints32, Floats]
#: An empty matrix, for compiled code that takes either this or floats.
NO_INTEGERS: Integers = (np.zeros((0, 0), np.int8), *np.zeros((2, 0), np.int32), np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class ByteMatrix:
    """Constant 8-bit weights (N, K), their scale, and the tables that the helpers derive from them."""

    scale: np.float32 | Floats  # one, or one a row
    codes: Ints8  # as they lie in the file
    row_sums: Ints32  # (N,): sums over K as the helper computes them
    losing: int  # weights of a row, the first ones, that lose their sign if they are -128; 0 if none of them is
    floats: Callable[[], Contraction]  # the codes, made when first used
    lowest: Callable[[], Contraction]  # 256 where a weight loses its sign
    tiles: Callable[[Ints8], Ints32] | None = None  # products on the integer units, in place of `floats`

    @classmethod
    def of(cls, weights: Array, scale: np.float32 | Floats, keeps_signs: bool = False) -> ByteMatrix:
        """Read `weights` of any type as int8. `keeps_signs` is for products that the helpers do not compute."""
        codes = np.ascontiguousarray(weights).view(np.int8)
        grouped = 0 if keeps_signs else codes.shape[1] & ~15
        losing = grouped if codes[:, :grouped].min(initial=0) == -128 else 0
        floats = cache(lambda: Contraction.of(codes.T, (-128, 127)))
        lowest = cache(lambda: Contraction.of((codes[:, :losing] == -128).T * np.int16(256), (-128, 0)))
        return cls(scale, codes, row_sums(codes), losing, floats, lowest)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows N and columns K."""
        return self.codes.shape[0], self.codes.shape[1]

    def integers(self, is_padded: bool = False) -> Integers:
        """Return the operands of add_quantized: codes; the number of losing ones, sum and scale of each row.

        Codes are (N, K), or have zeros up to a multiple of sixteen columns.
        """
        codes = self.codes
        if is_padded and codes.shape[1] % 16:
            codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 16)))
        losing = np.where(codes[:, : self.losing].min(axis=1, initial=0) == -128, self.losing, 0).astype(np.int32)
        return codes, losing, self.row_sums, np.array(np.broadcast_to(self.scale, len(codes)), np.float32)

    def sums(self, codes: Ints8) -> Ints32:
        """Return sums of products (B, N) of `codes` (B, K), as the helper computes them."""
        if suits(self.codes, len(codes)):
            return in_place(codes.astype(np.int16), self.codes, self.losing)
        sums = _sums(self.floats(), codes) if self.tiles is None else self.tiles(codes)
        if self.losing:
            # |x| * -128 instead of x * -128 where x is negative, in whole groups of sixteen
            sums += _sums(self.lowest(), np.minimum(codes[:, : self.losing], 0))
        return sums

    def accumulate(self, rows: Rows, out: Floats) -> None:
        """Add the rows times the weights to `out` (B, N): an int32 sum, converted to float32, times the product of the
        scales.
        """
        sums = self.sums(rows.codes)
        if not rows.is_centred:
            sums -= rows.zero_point[:, None] * self.row_sums
        out += sums.astype(np.float32) * (rows.scale[:, None] * self.scale)


def _sums(contraction: Contraction, codes: Ints8) -> Ints32:
    return accumulators_int32(contraction(codes.astype(contraction.real)))


def row_sums(codes: Ints8) -> Ints32:
    """Return the sums over the rows of `codes` (N, K), eight lanes of which are 16 bits wide and wrap.

    Source: SseReductionSumVector. Whole groups of sixteen add pairs, a group of eight adds singles, the rest in int32.
    """
    units, depth = codes.shape
    sums = np.empty(units, np.int32)
    pairs, singles = depth & ~15, depth & ~7
    # Sums of floats below 2**24 are exact, and BLAS makes them much faster than NumPy sums integers.
    one = np.ones((1, pairs // 16), np.float32 if pairs < 1 << 20 else np.float64)
    step = max(1, _BLOCK // max(1, depth))
    for start in range(0, units, step):
        part = codes[start : start + step]
        columns = matmul(one, part[:, :pairs].astype(one.dtype).reshape(len(part), -1, 16))
        lanes = columns.reshape(-1, 8, 2).sum(axis=2).astype(np.int32)
        if singles > pairs:
            lanes += part[:, pairs:singles]
        wrapped = lanes.astype(np.int16).sum(axis=1, dtype=np.int32)
        sums[start : start + step] = wrapped + part[:, singles:].sum(axis=1, dtype=np.int32)
        release(part)
    return sums
