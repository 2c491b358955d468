"""Float32 products and functions as Eigen computes them on x86.

Float32 matrix products in the order in which Eigen computes them on x86 with SSE.

LiteRT's recurrent operators call Eigen even in the reference resolver. A product's partial sums depend on its sizes
and, beyond a depth of 680, on the first-level cache: four lanes, every product and sum rounded, no fused multiply-add.
Source: Eigen 5 (LiteRT 2.3): GeneralProduct.h, products/GeneralMatrixVector.h, GeneralBlockPanelKernel.h, Redux.h,
InnerProduct.h; LiteRT 2.3 cpu_backend_gemm_eigen.cc.

Float32 exp, tanh and logistic as Eigen computes them on x86 with SSE: groups of four, then the rest.

Source: Eigen 5 (the pin of LiteRT 2.3): functors/UnaryFunctors.h and the packet math of exp, tanh and logistic.

The complementary error function as Eigen computes it on x86 with SSE and no fused multiply-add.

Source: Eigen 5 (the pin of LiteRT 2.3): SpecialFunctionsImpl.h generic_fast_erfc<float>; GenericPacketMathFunctions.h
pexp_float, twoprod_low, veltkamp_splitting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.libm import Elementwise, Floats, expf, over

EigenFloats = NDArray[np.float32]
Dot = Callable[[EigenFloats, EigenFloats, EigenFloats], None]

#: Products whose depth, rows and columns add up to less are computed coefficient by coefficient.
_COEFFICIENT_BASED = 20
#: Products of which no size is as large as this are not blocked.
_UNBLOCKED = 48
#: Bytes of the first-level data cache of most processors before 2019, and of AArch64 as Eigen assumes it.
FIRST_LEVEL_CACHE = 32 << 10


def product(
    columns: EigenFloats, x: EigenFloats, dot: Dot | None = None, cache: int = FIRST_LEVEL_CACHE
) -> EigenFloats:
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
def add_row(row: EigenFloats, factor: Real, out: EigenFloats) -> None:
    """Add row * factor to `out`, both 1-D.

    The caller guarantees: `row` has the size of `out`.
    """
    for n in range(out.size):
        out[n] += row[n] * factor


@in_pieces(lambda columns, x, out: x.size * out.shape[1], x="r", out="r")
@compiled
def matrix_vector(columns: EigenFloats, x: EigenFloats, out: EigenFloats) -> None:
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
def coefficients(columns: EigenFloats, x: EigenFloats, out: EigenFloats) -> None:
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
def _inner_product(columns: EigenFloats, x: EigenFloats, out: EigenFloats) -> None:
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
def _block(columns: EigenFloats, x: EigenFloats, block: Int, out: EigenFloats) -> None:
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
def _even_and_odd(w: EigenFloats, x: EigenFloats, first: Int, last: Int) -> Real:
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
def _by_four(w: EigenFloats, x: EigenFloats, first: Int, last: Int) -> Real:
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


def row_sums(x: EigenFloats) -> EigenFloats:
    """Return the sum of each row of x (R, N), C-contiguous and from a 16-byte boundary on: (R,).

    Source: redux_impl (linear, vectorized) of a column: whole aligned packets, then what lies before and behind them.
    """
    out = np.zeros(x.shape[0], np.float32)
    if x.size:
        _row_sums_into(x, out)
    return out


@in_pieces(x="r", out="r", step=4)
@compiled
def _row_sums_into(x: EigenFloats, out: EigenFloats) -> None:
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


def exp(x: Floats) -> Floats:
    """Return exp of `x`, as written from a 16-byte boundary on, in any shape.

    Whole groups of four go through a polynomial, the rest through libm.

    Source: pexp_float without fused multiply-add; dense_assignment_loop_impl.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty(flat.shape, np.float32)
    whole = flat.size & ~3
    out[:whole] = packet_exp(flat[:whole])
    out[whole:] = expf(flat[whole:])
    return out.reshape(x.shape)


@compiled
def _exp(value: Real) -> Real:
    """Reduce x by multiples of log 2, then evaluate a polynomial."""
    if value != value:
        return value
    if value < np.float32(-104.0):
        return np.float32(0)
    x = min(value, np.float32(88.723))
    m = np.floor(x * np.float32(1.44269504088896341) + np.float32(0.5))
    r = m * np.float32(-0.693359375) + x
    r = m * np.float32(2.12194440e-4) + r
    r2 = r * r
    even = r2 * np.float32(1.37449637986719608306884765625e-3) + np.float32(4.166965186595916748046875e-2)
    odd = r2 * np.float32(8.36894474923610687255859375e-3) + np.float32(0.16666518151760101318359375)
    even = r2 * even + np.float32(0.49999988079071044921875)
    p = r * odd + even
    p = r2 * p + (r + np.float32(1))
    return max(np.float32(np.float64(p) * 2.0**m), value)


def tanh(x: Floats) -> Floats:
    """Return tanh of `x`, of any shape, by a rational function, the same for packets and single elements.

    Source: ptanh_float without fused multiply-add.
    """
    out = np.empty(x.shape, np.float32)
    _tanh_into(np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
    return out


@compiled
def tanh_element(value: Real) -> Real:
    """Return `tanh` of one element."""
    clamp = np.float32(7.90738964080810547)
    x = min(max(value, -clamp), clamp)
    x2 = x * x
    p = np.float32(1.394553628e-8) * x2 + np.float32(2.102733560e-5)
    p = p * x2 + np.float32(3.520756727e-3)
    p = p * x2 + np.float32(1.340216100e-1)
    q = np.float32(8.015776984e-7) * x2 + np.float32(3.326951409e-4)
    q = q * x2 + np.float32(2.597254514e-2)
    q = q * x2 + np.float32(4.673548340e-1)
    q = q * x2 + np.float32(1.0)
    return (x2 * x * p + x) / q


def logistic(x: Floats, offset: int = 0) -> Floats:
    """Return 1 / (1 + exp(-x)) of `x`, of any shape, as written to memory `offset` elements behind a 16-byte boundary.

    Whole aligned groups of four go through a polynomial; elements before and behind them go through the C library.
    Source: dense_assignment_loop_impl, scalar_logistic_op<float>.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty(flat.shape, np.float32)
    head = min(-offset % 4, flat.size)
    tail = head + ((flat.size - head) & ~3)
    _logistic_into(flat[head:tail], out[head:tail])
    if head or tail < flat.size:
        rest = np.concatenate((flat[:head], flat[tail:]))
        e = expf(np.minimum(rest, np.float32(_LARGEST_EXPONENT)))
        e /= np.float32(1) + e
        out[:head], out[tail:] = e[:head], e[head:]
    return out.reshape(x.shape)


#: From here on the logistic function is 1 in float32.
_LARGEST_EXPONENT = 16.6355324


@compiled
def logistic_of_exp(value: Real) -> Real:
    """Return the logistic function of a single element, by exp of the C library."""
    largest = np.float32(_LARGEST_EXPONENT)
    e = math.exp(largest if value > largest else value)
    return e / (np.float32(1) + e)


@compiled
def logistic_element(value: Real) -> Real:
    """Return the logistic function as in a group of four: exp(x / 2) squared over one plus itself.

    Half of x is reduced by multiples of log 2, then a polynomial is evaluated.
    """
    if value < np.float32(-104.0):
        return np.float32(0)
    if value != value:
        return value
    half = np.float32(0.5)
    x = min(value, np.float32(_LARGEST_EXPONENT)) * half
    m = np.floor(x * np.float32(1.44269504088896341) + half)
    r = m * np.float32(-0.693359375) + x
    r = m * np.float32(2.12194440e-4) + r
    r2 = r * r
    even = r2 * np.float32(4.1898667812347412109375e-2) + np.float32(0.49999141693115234375)
    odd = r2 * np.float32(8.33471305668354034423828125e-3) + np.float32(0.16666877269744873046875)
    p = r * odd + even
    p = r2 * p + (r + np.float32(1))
    e = p * np.float32(2.0**m)
    e = e * e
    return e / (np.float32(1) + e)


#: exp of whole groups of four.
packet_exp = Elementwise(over(_exp, 8))
_tanh_into, _logistic_into = over(tanh_element, 8), over(logistic_element, 8)


#: Beyond this the function is 0 or 2.
_CLAMP = np.float32(11)
_ONE, _TWO = np.float32(1), np.float32(2)
_SPLITTER = np.float32(4097)

# Polynomials, highest power first.
_SMALL = (
    5.61802298761904239654541015625e-04,
    -4.91381669417023658752441406250e-03,
    2.67075151205062866210937500000e-02,
    -1.12800106406211853027343750000e-01,
    3.76122951507568359375000000000e-01,
    -1.12837910652160644531250000000e00,
)
_NUMERATOR = (
    1.0208116471767425537109375e-01,
    4.2920666933059692382812500e-01,
    3.2379078865051269531250000e-01,
    5.3971976041793823242187500e-02,
)
_DENOMINATOR = (
    1.7251677811145782470703125e-02,
    3.9137163758277893066406250e-01,
    1.0,
    6.2173241376876831054687500e-01,
    9.5662862062454223632812500e-02,
)


def erfc(x: EigenFloats) -> EigenFloats:
    """Return erfc of the flat array `x`. Groups of four take Eigen's exponential, the rest the C library's."""
    whole = x.size & ~3
    return np.concatenate([_erfc(x[:whole], packet_exp), _erfc(x[whole:], expf)])


def single_erfc(x: EigenFloats) -> EigenFloats:
    """Return erfc as computed one element at a time."""
    return _erfc(x, expf)


def _erfc(values: EigenFloats, exp: Callable[[EigenFloats], EigenFloats]) -> EigenFloats:
    x = np.clip(values, -_CLAMP, _CLAMP)
    square = x * x
    small = x * _polynomial(square, _SMALL) + _ONE
    large = square > _ONE
    if not large.any():
        return small
    safe = np.where(large, x, _TWO)
    square = safe * safe
    power = exp(-square)
    power = power - power * _square_error(safe, square)
    inverse = _ONE / square
    ratio = _polynomial(inverse, _NUMERATOR) / (safe * _polynomial(inverse, _DENOMINATOR))
    return np.where(large, power * ratio + np.where(safe < 0, _TWO, np.float32(0)), small)


def _polynomial(x: EigenFloats, coefficients: Sequence[float]) -> EigenFloats:
    """Evaluate a polynomial by Horner's scheme; every product and every sum is rounded."""
    total = np.full(x.shape, coefficients[0], np.float32)
    for coefficient in coefficients[1:]:
        total = total * x + np.float32(coefficient)
    return total


def _square_error(x: EigenFloats, square: EigenFloats) -> EigenFloats:
    """Return x * x - square, by halves of 12 bits."""
    spread = _SPLITTER * x
    high = (x - spread) + spread
    low = x - high
    error = high * high - square
    error = high * low + error
    error = low * high + error
    rest: EigenFloats = low * low + error
    return rest
