"""Float activations against 8-bit weights: rows quantized on the way, exact integer products, one scale at the end.

LiteRT's x86 build computes this way in every resolver: NEON helpers through SSE for the quantization, SSE helpers for
the products.

Source: LiteRT 2.3 optimized/neon_tensor_utils.cc NeonSymmetricQuantizeFloats, NeonAsymmetricQuantizeFloats;
optimized/sse_tensor_utils.cc SseMatrixBatchVectorMultiplyAccumulateImpl, SseReductionSumVector, as compiled with SSE4.1
and without AVX2.

Float activations against narrow weights as XNNPACK has them: rows always quantized asymmetrically, in float32.

Source: XNNPACK's xnn_f32_qd8_asymmetric_quantization_params, f32-qs8 vcvt and qd8-f32 matrix products.

Products of quantized rows with weights of four bits whose scales belong to blocks of inputs.

Each block's sum is an exact integer; sums of blocks are added in float32, in an order that depends on the machine.
Source: XNNPACK, qd8-f32-qb4w-gemm and packing.cc xnn_pack_qs8_qb4w_gemm_goi_w.

Rows of floats against weights of four bits, packed two in a byte for vector code.

Packed weights are unsigned: an offset is added to each, and its share is subtracted at the end. With the offset 7, -8
does not fit. It becomes 8, and its bits spill into neighbours.
Source: LiteRT 2.3 optimized/4bit/sse_fully_connected.cc, fully_connected_common.h, as compiled with SSSE3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.flushing import multiply_add_once
from tflq.engine.jit.images import release
from tflq.engine.jit.pieces import in_pieces, matmul
from tflq.engine.numerics.estimates import fuse
from tflq.engine.numerics.products import Contraction, accumulators_int32, holds_zeros, in_place, row_product, suits
from tflq.engine.numerics.rounding import INT32_MAX, float_to_int32, round_half_away, wrap_int32
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Elements of weights that are widened at a time.
_BLOCK = 1 << 20

Floats = NDArray[np.float32]
Ints8 = NDArray[np.int8]
Ints32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedRows:
    """Quantized rows: x[b] = scale[b] * (codes[b] - zero_point[b])."""

    codes: Ints8  # (B, K)
    scale: Floats  # (B,)
    zero_point: Ints32  # (B,); zeros if quantized symmetrically

    @property
    def is_centred(self) -> bool:
        """True if every zero point is 0."""
        return not self.zero_point.any()


def quantize_rows(x: Floats, asymmetric: bool) -> QuantizedRows:
    """Quantize each row of `x` (B, K) by itself. Raises UndefinedResultError for NaN and infinities.

    The original converts the results of NaN and infinities to integers, which is undefined, and its groups of four and
    its single elements order NaN differently.

    Source: BatchQuantizeFloats.
    """
    if not np.isfinite(x).all():
        raise UndefinedResultError("BatchQuantizeFloats", "a row to be quantized holds NaN or an infinity")
    rows = QuantizedRows(np.empty(x.shape, np.int8), np.empty(len(x), np.float32), np.zeros(len(x), np.int32))
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

    def accumulate(self, rows: QuantizedRows, out: Floats) -> None:
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


#: Sums (R, O), scales of the rows (R, 1), scales of the weights (O,), bias (O,) -> results, all float32.
Rescale = Callable[[Floats, Floats, Floats, Floats], NDArray[np.float32]]


def quantize_rows_float32(x: Floats) -> QuantizedRows:
    """Quantize each row of `x` (B, K) by itself; ranges include 0. Raises UndefinedResultError if not finite."""
    if not np.isfinite(x).all():
        raise not_finite()
    rows = QuantizedRows(np.empty(x.shape, np.int8), np.empty(len(x), np.float32), np.empty(len(x), np.int32))
    _quantize(np.ascontiguousarray(x), rows.codes, rows.scale, rows.zero_point)
    return rows


def not_finite() -> UndefinedResultError:
    """Return the error for rows that cannot be quantized."""
    return UndefinedResultError("xnn_f32_qd8_asymmetric_quantization_params", "a row holds NaN or an infinity")


@in_pieces(8, x="r", codes="r", scale="r", zero_point="r")
@compiled
def _quantize(x: Floats, codes: Ints8, scale: Floats, zero_point: Ints32) -> None:
    """Quantize rows, half to even. The zero point is the candidate with the smaller error at the range's ends.

    The caller guarantees: `x` and `codes` are (B, K), `scale` is (B) and `zero_point` (B).
    """
    lowest, highest = np.float32(-128), np.float32(127)
    for b in range(x.shape[0]):
        low, high = _bounds(x[b])
        per_unit = np.float32(1) if low == high else np.float32(np.float32(255) / np.float32(high - low))
        scaled_low, scaled_high = np.float32(low * per_unit), np.float32(high * per_unit)
        from_low, from_high = np.float32(lowest + scaled_low), np.float32(highest + scaled_high)
        is_low = np.float32(from_low + from_high) > np.float32(0)
        zero = np.float32(lowest - scaled_low) if is_low else np.float32(highest - scaled_high)
        zero = np.rint(min(max(zero, lowest), highest))
        scale[b] = np.float32(np.float32(1) / per_unit)
        zero_point[b] = np.int32(zero)
        for k in range(x.shape[1]):
            scaled = np.float32(x[b, k] * per_unit)
            clamped = min(max(scaled, np.float32(lowest - zero)), np.float32(highest - zero))
            codes[b, k] = np.int32(np.rint(clamped)) + np.int32(zero)


@in_pieces(lambda x, weights, *_: len(x) * weights.size, x="r", out="r")
@compiled
def multiply_quantized(
    x: Floats,
    weights: Ints8,
    scale: Floats,
    bias: Floats,
    is_fused: bool,
    low: Real,
    high: Real,
    out: Floats,
    undefined: Ints8,
) -> None:
    """Compute out = clamp(the rows of `x`, quantized as quantize_rows_float32 does, times `weights`, rescaled).

    `is_fused` selects rescale_fused, else rescale_apart. If a row holds NaN or an infinity, `undefined` becomes 1
    instead.

    The caller guarantees: `x` is (B, K), `weights` (N, K), `scale` and `bias` (N), `out` (B, N), `undefined` (1).
    """
    rows, depth = x.shape
    codes, row_scale = np.empty((rows, depth), np.int16), np.empty(rows, np.float32)
    quantize_centred(x, codes, row_scale, np.empty(rows, np.int32), undefined)
    if undefined[0]:
        return
    for b in range(rows):
        row = codes[b]
        for n in range(out.shape[1]):
            factors, total = weights[n], np.int32(0)
            for k in range(depth):
                total += np.int32(row[k]) * np.int32(factors[k])
            value = _rescaled(np.float32(np.int32(total)), row_scale[b], scale[n], bias[n], is_fused)
            out[b, n] = _held(value, low, high)


@compiled
def _rescaled(total: Real, row: Real, scale: Real, bias: Real, is_fused: bool) -> Real:
    """Return `rescale_fused` or `rescale_apart` of one sum."""
    if is_fused:
        return multiply_add_once(np.float32(total * row), scale, bias)
    return np.float32(np.float32(total * np.float32(scale * row)) + bias)


@compiled
def _held(value: Real, low: Real, high: Real) -> Real:
    """Return a number inside its limits; NaN passes."""
    value = low if value < low else value
    return high if value > high else value


@writes("codes", "scale", "zero_point", "undefined")
@in_pieces(8, x="r", codes="r", scale="r", zero_point="r")
@compiled
def quantize_centred(x: Floats, codes: Array, scale: Floats, zero_point: Ints32, undefined: Ints8) -> None:
    """Quantize rows as quantize_rows_float32 does, less their zero points, as int16.

    If a row holds NaN or an infinity, `undefined` becomes 1 instead.

    The caller guarantees: `x` and `codes` are (B, K), `scale` and `zero_point` (B), `undefined` (1).
    """
    if not are_finite(x):
        undefined[0] = 1
        return
    _quantize(x, codes, scale, zero_point)
    for b in range(x.shape[0]):
        for k in range(x.shape[1]):
            codes[b, k] -= np.int16(zero_point[b])


@writes("out")
@in_pieces(sums="r", first="r", out="r")
@compiled
def rescale_rows(
    sums: Ints32,
    first: Int,
    row: Floats,
    each: Int,
    scale: Floats,
    bias: Floats,
    is_fused: bool,
    low: Real,
    high: Real,
    out: Floats,
) -> None:
    """Rescale rows of sums from row `first` on, then clamp; `each` rows share a scale of `row`.

    The caller guarantees: `sums` and `out` are (R, O), `scale` and `bias` (O), `row` has (first + R) / each elements.
    """
    for r in range(sums.shape[0]):
        own = row[(first + r) // each]
        for n in range(sums.shape[1]):
            value = _rescaled(np.float32(sums[r, n]), own, scale[n], bias[n], is_fused)
            out[r, n] = _held(value, low, high)


def rescale_fused(sums: Floats, row: Floats, weights: Floats, bias: Floats) -> NDArray[np.float32]:
    """Return the sum times the row's scale, rounded; that times the weights' scale plus the bias, rounded once."""
    return fuse(sums * row, weights, bias)


def rescale_apart(sums: Floats, row: Floats, weights: Floats, bias: Floats) -> NDArray[np.float32]:
    """Return the sum times the product of both scales, plus the bias; each step is rounded."""
    return np.asarray(sums * (weights * row) + bias)


#: Inputs whose weights are summed at a time when they are packed.
_PACKED = 16
#: Inputs that one step reads; the AVX2 kernel spreads them over four lanes: two in a row share a lane.
_STEP = 8
#: Lanes of the AVX-512 VNNI kernels; codes are unsigned there: this is added to each.
_ONE_LANE, _UNSIGNED = 1, 128
#: Inputs of a block up to which float32 holds the sums of its products exactly.
_EXACT = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Weights (K, O) of four bits, in blocks along K, with a scale for each block (K / size, O), bfloat16 as float32.

    `packed` (O,) is the amount that a zero point of 1 subtracts from each result. The size is a multiple of 32.
    """

    codes: NDArray[np.int8]
    scales: Floats
    packed: Floats

    @classmethod
    def of(cls, codes: Ints8, scales: Floats) -> Blocks:
        """Pack weights (O, K) with scales (O, K / size)."""
        packed, size = np.zeros(len(codes), np.float32), codes.shape[1] // scales.shape[1]
        for first in range(0, codes.shape[1], _PACKED):
            part = codes[:, first : first + _PACKED].sum(1, np.int32).astype(np.float32)
            packed = packed - part * scales[:, first // size]
        return cls(np.ascontiguousarray(codes.T), np.ascontiguousarray(scales.T), packed)

    def sums(self, lanes: int) -> Array:
        """Return room for the sums of one block."""
        is_exact = len(self.codes) // len(self.scales) <= _EXACT
        return np.empty((lanes, self.codes.shape[1]), np.float32 if is_exact else np.float64)


@writes("sums", "out")
@in_pieces(lambda codes, row, point, weights, *_: codes.size * weights.shape[1], codes="r", row="r", point="r", out="r")
@compiled
def multiply_blocks(
    codes: Array,
    row: Floats,
    point: Ints32,
    weights: Ints8,
    scales: Floats,
    packed: Floats,
    bias: Floats,
    sums: Array,
    low: Real,
    high: Real,
    out: Floats,
) -> None:
    """Compute out = clamp(the rows of `codes` (B, K), int16, less their zero points `point`, times weights in blocks).

    A result has a float32 sum for each lane of `sums` (lanes, O). The share of the zero point is a sum of its own, with
    which the first lane begins: 16 weights at a time, times their block's scale; product and sum are each rounded. Sums
    of blocks are fused multiply-adds. With four lanes, these are added in pairs, and scale and bias are fused; with one
    lane, scale and bias are rounded apart, and codes are unsigned.

    The caller guarantees: `row` and `point` have B, `packed` and `bias` O elements, `weights` and `scales` are those of
    Blocks, `out` is (B, O).

    Source: XNNPACK, qd8-f32-qb4w-gemm-1x16c8-minmax-avx512vnni, qd8-f32-qb4w-gemm-1x4c8-minmax-avx2.
    """
    lanes, units = sums.shape
    size = weights.shape[0] // scales.shape[0]
    total = np.empty((lanes, units), np.float32)
    for b in range(codes.shape[0]):
        zero = point[b] + (_UNSIGNED if lanes == _ONE_LANE else 0)
        share = np.float32(zero)
        for lane in range(lanes):
            for n in range(units):
                total[lane, n] = np.float32(packed[n] * share) if lane == 0 else np.float32(0)
        for block in range(scales.shape[0]):
            for lane in range(lanes):
                for n in range(units):
                    sums[lane, n] = 0
            for k in range(0, size, 2):  # two in a row share a lane
                at, taken = block * size + k, sums[k % _STEP * lanes // _STEP]
                code, next_code = np.float32(codes[b, at] + zero), np.float32(codes[b, at + 1] + zero)
                factors, next_factors = weights[at], weights[at + 1]
                for n in range(units):
                    taken[n] += code * np.float32(factors[n]) + next_code * np.float32(next_factors[n])
            for lane in range(lanes):
                for n in range(units):
                    total[lane, n] = multiply_add_once(np.float32(sums[lane, n]), scales[block, n], total[lane, n])
        for n in range(units):
            if lanes == _ONE_LANE:
                value = np.float32(np.float32(total[0, n] * row[b]) + bias[n])
            else:
                pairs = np.float32(np.float32(total[0, n] + total[1, n]) + np.float32(total[2, n] + total[3, n]))
                value = multiply_add_once(pairs, row[b], bias[n])
            out[b, n] = _held(value, low, high)


#: Weights of a row that are packed together, and bytes of which each holds two: one of the first half and one of the
#: second.
DEPTH = 32
#: The byte of a negative sum.
_BELOW = 0xFF


def pack(weights: Ints8, offset: int) -> NDArray[np.uint8]:
    """Return the values (N, K) that the kernel reads from the packed weights (N, K) of an even K.

    With the offset 7, a -8 becomes 15, and so does the weight that shares its byte as the high half. In whole groups of
    DEPTH, which vector code packs, a -8 of the first half also changes the weight two places later in the second half.

    Source: SsePackInner.
    """
    units, length = weights.shape
    lifted = np.full((units, -(-length // DEPTH), DEPTH), offset, np.uint8)
    lifted.reshape(units, -1)[:, :length] = (weights.astype(np.int16) + offset) & _BELOW
    first, second = lifted[..., : DEPTH // 2], lifted[..., DEPTH // 2 :]
    low, high = second & 15, first | second
    whole = slice(length // DEPTH)
    pairs = first[:, whole].reshape(units, -1, DEPTH // 8, 2, 2)  # of bytes, and of codes in a byte of the file
    carried = np.where(pairs[..., 0, :] == _BELOW, 15, 0).astype(np.uint8)
    low[:, whole].reshape(pairs.shape)[..., 1, :] |= carried
    high = (np.where(first == _BELOW, 15, first) | np.where(second == _BELOW, 15, 0)).astype(np.uint8)
    return np.concatenate([high, low], axis=-1).reshape(units, -1)[:, :length]


@dataclass(frozen=True, slots=True, eq=False)
class PackedMatrix:
    """Constant weights (N, K) of four bits, as packed."""

    products: Contraction
    scale: Floats  # (N,)
    offset: int  # added to weights before they were packed

    @classmethod
    def of(cls, weights: Ints8, scale: Floats, offset: int) -> PackedMatrix:
        """Pack `weights` of an even K."""
        return cls(Contraction.of(pack(weights, offset).T, (-128, 127)), scale, offset)

    def __call__(self, x: Floats, bias: Floats | None) -> Floats:
        """Return the rows `x` (B, K) times the weights, plus bias, (B, N).

        Rounding: offset times row scale times weight scale, plus bias, plus sum times row scale times weight scale,
        each rounded.

        Source: SseBatchQuantizeFloats4Bit, SseAssignBiasAndComputeOffsets, SseRunKernel, SseUnpack.
        """
        codes, scale = np.empty(x.shape, np.int8), np.empty(len(x), np.float32)
        _packed_int4_quantize(np.ascontiguousarray(x), codes, scale)
        share = -self.offset * codes.sum(1, dtype=np.int32)
        out = (share.astype(np.float32) * scale)[:, None] * self.scale
        if bias is not None:
            out += bias
        sums = self.products(codes.astype(self.products.real)).astype(np.float32)
        out += sums * scale[:, None] * self.scale
        return np.asarray(out)


@in_pieces(8, x="r", codes="r", scale="r")
@compiled
def _packed_int4_quantize(x: Floats, codes: Ints8, scale: Floats) -> None:
    """Quantize rows symmetrically.

    Quotients are float64, rounded to float32. NaN is no largest magnitude; what leaves int32 becomes 0.

    The caller guarantees: `x` and `codes` are (B, K), `scale` is (B).
    """
    for b in range(x.shape[0]):
        largest = np.float32(0)
        for k in range(x.shape[1]):
            if largest < abs(x[b, k]):
                largest = abs(x[b, k])
        if largest == 0:
            largest = np.float32(127)
        inverse = np.float32(127.0 / np.float64(largest))
        scale[b] = np.float32(np.float64(largest) / 127.0)
        for k in range(x.shape[1]):
            codes[b, k] = np.int8(float_to_int32(round_half_away(np.float64(x[b, k] * inverse))))


def blocks(codes: Array, zero_point: Ints32, weights: Ints8, scales: Floats) -> Floats:
    """Return quantized rows (B, K) times weights (N, K) with a scale for each block of a row (N, blocks), (B, N).

    Rounding: each block's sum times its scale, then the sum over blocks, in order; the share of the zero point is
    summed alike and subtracted.

    Source: fully_connected.cc EvalBlockwise4Bit.
    """
    units, count = scales.shape
    out, share = np.zeros((len(codes), units), np.float32), np.zeros(units, np.float32)
    runs = codes.reshape(len(codes), count, -1).astype(np.float32)
    parts = weights.reshape(units, count, -1).astype(np.float32)
    for block in range(count):
        out += runs[:, block] @ parts[:, block].T * scales[:, block]
        share += scales[:, block] * parts[:, block].sum(1)
    return np.asarray(out - zero_point.astype(np.float32)[:, None] * share, np.float32)
