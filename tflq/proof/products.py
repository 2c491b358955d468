"""Operators that sum products with constant weights: equal if their stages agree on all possible sums.

Operators with constant weights as sums of products: their weights, and what each channel reads at each place.

An output stage as a monotone step function of the accumulator, and where its steps are.

If a stage never falls over an interval, its breakpoints define it there: the first accumulators that give each code.
Bisection finds them. The stage's kind, and bounds that exclude every wrap and every conversion beyond int32 in the
interval, show that it never falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.prepared import same_fields
from tflq.engine.kernels import conv_2d, depthwise_conv_2d, transpose_conv
from tflq.engine.kernels import fully_connected_dense as fully_connected
from tflq.engine.kernels.families.contraction import Output, centre, code_span, weights_read_as_int8
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.products import Range
from tflq.proof.operator import BoundOperator, ProfileVerdict, Word, compare
from tflq.proof.reach import Values, can_be_exact, values_for, with_multiples
from tflq.typing import Array

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ReceptiveField:
    """The input elements (flat) and columns of the weights (C, K) that one output channel sees at one place."""

    elements: Ints
    taps: Ints


#: A channel's receptive fields.
Fields = Callable[[int], Sequence[ReceptiveField]]


@dataclass(frozen=True, slots=True)
class Reader:
    """How an operator's sums are read: the eval that computes them, the position of its data, weights and fields."""

    eval: Callable[..., Array]
    read: Callable[[Node, Any], tuple[Array, Fields]]
    x: int = 0


def _convolution(node: Node, data: conv_2d.OpData) -> tuple[Array, Fields]:
    w = _weights(node, data)
    filters, _, _, depth = w.shape
    seen, channels, every = _seen(data.window), np.arange(depth), node.input(0).shape[3]
    return w.reshape(filters, -1), lambda channel: [
        _over_channels(pixels * every + channel // (filters // data.group_count) * depth, taps * depth, channels)
        for taps, pixels in seen
    ]


def _depthwise(node: Node, data: depthwise_conv_2d.OpData) -> tuple[Array, Fields]:
    w = _weights(node, data)
    seen, depth = _seen(data.window), node.input(0).shape[3]
    return w.reshape(-1, w.shape[3]).T, lambda channel: [
        ReceptiveField(pixels * depth + channel // data.times, taps) for taps, pixels in seen
    ]


def _dense(node: Node, data: fully_connected.OpData) -> tuple[Array, Fields]:
    w = centre(node.constant(1), data.weight_zero_point)
    every = np.arange(w.shape[1])
    return w, lambda channel: [ReceptiveField(every, every)]


def _transpose(node: Node, data: transpose_conv.OpData) -> tuple[Array, Fields]:
    """Return weights (O, KH * KW * C); each output pixel sees the taps that some input pixel spreads to it."""
    w = centre(node.constant(1), data.weight_zero_point)
    filters, _, _, depth = w.shape
    at, channels = data.window, np.arange(depth)
    rows = _largest([_spread_to(at, y, 0) for y in range(at.height)])
    columns = _largest([_spread_to(at, x, 1) for x in range(at.width)])
    seen = _grid(rows, columns, at.kernel_w, at.out_w)
    return w.reshape(filters, -1), lambda channel: [
        _over_channels(pixels * depth, taps * depth, channels) for taps, pixels in seen
    ]


def _over_channels(elements: Ints, taps: Ints, channels: Ints) -> ReceptiveField:
    """Return the field that reads all these channels of a pixel by the taps that follow each other."""
    return ReceptiveField((elements[:, None] + channels).reshape(-1), (taps[:, None] + channels).reshape(-1))


def _weights(node: Node, data: conv_2d.OpData | depthwise_conv_2d.OpData) -> Array:
    w = node.constant(1)
    return centre(weights_read_as_int8(w) if data.output.pipeline.dtype == np.int16 else w, data.weight_zero_point)


#: How sums are read, by the type of the prepared data.
READERS: Mapping[type, Reader] = {
    conv_2d.OpData: Reader(conv_2d.eval_quantized, _convolution),
    depthwise_conv_2d.OpData: Reader(depthwise_conv_2d.eval_quantized, _depthwise),
    fully_connected.OpData: Reader(fully_connected.eval_quantized, _dense),
    transpose_conv.OpData: Reader(transpose_conv.eval_quantized, _transpose, x=2),
}


def _seen(at: Window) -> list[tuple[Ints, Ints]]:
    """Return the sets of taps that are inside the image somewhere, with their pixels.

    Subsets of another are left out.
    """
    rows = _largest([_inside(at, y, 0) for y in range(at.out_h)])
    columns = _largest([_inside(at, x, 1) for x in range(at.out_w)])
    return _grid(rows, columns, at.kernel_w, at.width)


def _grid(
    rows: Sequence[Mapping[int, int]], columns: Sequence[Mapping[int, int]], kernel_w: int, width: int
) -> list[tuple[Ints, Ints]]:
    """Return the taps and pixels of each pair of rows and columns."""
    return [
        (
            np.array([ky * kernel_w + kx for ky in row for kx in column], np.int64),
            np.array([y * width + x for y in row.values() for x in column.values()], np.int64),
        )
        for row, column in product(rows, columns)
    ]


def _largest(seen: Sequence[Mapping[int, int]]) -> list[Mapping[int, int]]:
    """Return one of each with the same taps, without those whose taps are part of another's."""
    distinct = {frozenset(taps): taps for taps in seen}
    return [taps for keys, taps in distinct.items() if not any(keys < other for other in distinct)]


def _inside(at: Window, position: int, axis: int) -> dict[int, int]:
    """Return the pixel of each kernel index inside the image along one axis, for one output position."""
    size, kernel, stride, dilation, before = (
        (at.height, at.kernel_h, at.stride_h, at.dilation_h, at.pad_top),
        (at.width, at.kernel_w, at.stride_w, at.dilation_w, at.pad_left),
    )[axis]
    taps = ((k, position * stride - before + k * dilation) for k in range(kernel))
    return {k: pixel for k, pixel in taps if 0 <= pixel < size}


def _spread_to(at: Window, position: int, axis: int) -> dict[int, int]:
    """Return the input pixel of each kernel index that adds to one output position, along one axis."""
    size, kernel, stride, before = (
        (at.out_h, at.kernel_h, at.stride_h, at.pad_top),
        (at.out_w, at.kernel_w, at.stride_w, at.pad_left),
    )[axis]
    places = ((k, divmod(position + before - k, stride)) for k in range(kernel))
    return {k: pixel for k, (pixel, rest) in places if rest == 0 and 0 <= pixel < size}


#: Number of accumulators that are evaluated in one call, and number that fit in a core's second-level cache.
_AT_ONCE, _IN_CACHE = 1 << 20, 1 << 15
#: Limits on accumulators that are evaluated to find the breakpoints of one output, and to compare two one by one.
_MOST_PROBES, _MOST_COMPARED = 1 << 29, 1 << 29
_INT32 = 2**31
#: Number of runs of accumulators with different codes that are kept per channel.
MOST_RUNS = 1 << 14


def codes_of(output: Output, accumulators: Ints) -> Array:
    """Return codes of accumulators (rows, C), without the bias."""
    sums = np.ascontiguousarray(accumulators, output.bias.dtype)
    out = np.empty(sums.shape, output.pipeline.dtype)
    output.into(sums, out)
    return out


def bias_of(output: Output, channels: int) -> Ints:
    """Return one bias per channel; a single one is repeated."""
    bias = output.bias[:channels] if len(output.bias) >= channels else np.broadcast_to(output.bias, channels)
    return bias.astype(np.int64)


def never_falls(output: Output, low: Ints, high: Ints) -> bool:
    """Return whether codes never fall as the accumulator rises from `low` to `high` (per channel, without the bias)."""
    bias = bias_of(output, len(low))
    ends = low + bias, high + bias
    if output.bias.dtype != np.int64 and not all(_fits(e) for e in (low, high, *ends)):
        return False
    largest = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    return output.pipeline.stage.rises(largest, int(output.pipeline.zero_point))


def _fits(values: Ints) -> bool:
    return bool(np.all(values >= -_INT32) and np.all(values < _INT32))


def breakpoints(
    output: Output, low: Ints, high: Ints, limits: tuple[int, int] | None = None, near: Ints | None = None
) -> Ints | None:
    """Return the first accumulator from `low` to `high` that gives at least each code, (codes, C), else `high` + 1.

    Rows are the codes above the lowest of `limits`, by default the clamp, up to its highest. None if that would take
    too long. Codes must never fall between `low` and `high`. `near` are those of another output, to begin with.
    """
    first, last = limits or output.pipeline.clamp
    steps = int(np.max(high - low, initial=0)).bit_length() + 1
    if (last - first) * low.size * steps > _MOST_PROBES:
        return None
    codes = np.arange(first + 1, last + 1, dtype=np.int64)
    rows = max(1, _IN_CACHE // max(1, low.size))
    starts = range(0, codes.size, rows)
    guesses = [None if near is None else near[at : at + rows] for at in starts]
    parts = [
        _bisect(output, codes[at : at + rows], low, high, guess) for at, guess in zip(starts, guesses, strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty((0, low.size), np.int64)


#: Accumulators beside a guess that are tried first.
_BESIDE = 1


def _bisect(output: Output, codes: Ints, low: Ints, high: Ints, near: Ints | None) -> Ints:
    """Return the first accumulators, (codes, C), that give at least each code, sought beside `near` first."""
    left = np.broadcast_to(low, (codes.size, low.size)).copy()
    right = np.broadcast_to(high + 1, left.shape).copy()

    def is_reached(at: Ints) -> Array:
        return np.asarray((codes_of(output, np.minimum(at, high)) >= codes[:, None]) | (at > high))

    if near is not None:
        below, above = np.maximum(near - 1 - _BESIDE, low), np.minimum(near + _BESIDE, high + 1)
        is_low, is_high = is_reached(below), ~is_reached(above)
        left = np.where(is_low, left, np.where(is_high, above + 1, below + 1))
        right = np.where(is_low, below, np.where(is_high, right, above))
    while np.any(left < right):
        middle = (left + right) >> 1
        reached = is_reached(middle)
        right = np.where(reached, middle, right)
        left = np.where(reached, left, np.minimum(middle + 1, right))
    return left


def compared(first: Output, second: Output, low: Ints, high: Ints) -> dict[int, Ints] | None:
    """Return the accumulators for which the codes of two outputs differ, by channel, as rows (from, below).

    They are evaluated one by one; the result is None if that would take too long. A channel with more than `MOST_RUNS`
    rows may lack some.
    """
    length = int(np.max(high - low, initial=0)) + 1
    if length * low.size > _MOST_COMPARED:
        return None
    rows = max(1, _AT_ONCE // max(1, low.size))
    runs: dict[int, list[Ints]] = {}
    for start in range(0, length, rows):
        offsets = np.arange(start, min(start + rows, length), dtype=np.int64)[:, None]
        at = np.minimum(low + offsets, high)
        apart = (codes_of(first, at) != codes_of(second, at)) & (low + offsets <= high)
        for channel in np.flatnonzero(apart.any(axis=0)).tolist():
            edges = np.flatnonzero(np.diff(apart[:, channel], prepend=False, append=False)).reshape(-1, 2)
            runs.setdefault(channel, []).append(edges[: MOST_RUNS + 1] + int(low[channel]) + start)
    return {channel: np.concatenate(parts) for channel, parts in runs.items()}


#: Numbers of channels, and of their sets of taps, in which an input is searched that reaches such a sum.
_MOST_SEARCHED = 4096


@dataclass(frozen=True, eq=False)
class ReachedSums:
    """An operator as sums of products: weights (C, K), centred, the range of centred inputs, and the output stage.

    `x` is the operand of the inputs, `values` are the centred ones that it can hold in the model, and `span` is their
    range with 0. `fields` gives a channel's inputs at different places: any other place has a subset of one of these.
    """

    bound: BoundOperator
    x: Operand
    weights: Ints
    values: Values
    span: Range
    output: Output
    fields: Fields

    @cached_property
    def low(self) -> Ints:
        """The lowest sum of each channel; taps outside the image add 0."""
        return self._extreme(min(self.span[0], 0), max(self.span[1], 0))

    @cached_property
    def high(self) -> Ints:
        """The highest sum of each channel."""
        return self._extreme(max(self.span[1], 0), min(self.span[0], 0))

    def _extreme(self, above: int, below: int) -> Ints:
        positive, negative = np.maximum(self.weights, 0).sum(axis=1), np.minimum(self.weights, 0).sum(axis=1)
        return np.asarray(positive * above + negative * below)

    @property
    def with_bias(self) -> tuple[int, int]:
        """The lowest and highest sum of all channels, with the bias."""
        bias = bias_of(self.output, len(self.low))
        return int((self.low + bias).min()), int((self.high + bias).max())

    @cached_property
    def is_monotone(self) -> bool:
        """True if codes never fall between `low` and `high`."""
        return never_falls(self.output, self.low, self.high)

    @cached_property
    def _breakpoints(self) -> dict[tuple[int, int], Ints | None]:
        return {}

    def breakpoints(self, limits: tuple[int, int], near: Ints | None = None) -> Ints | None:
        """Return the sums at which codes between `limits` begin; None if codes may fall or the stage is unknown.

        `near` are those of another operator with the same sums, to begin the search with.
        """
        if limits not in self._breakpoints:
            found = breakpoints(self.output, self.low, self.high, limits, near) if self.is_monotone else None
            self._breakpoints[limits] = found
        return self._breakpoints[limits]


def sums_of(bound: BoundOperator) -> ReachedSums | None:
    """Return the operator as sums of products; None without constant weights, or if its sums may wrap."""
    prepared = bound.step.prepared
    assert prepared is not None  # guaranteed by bind
    reader = READERS.get(type(prepared.data))
    if reader is None or prepared.eval is not reader.eval:
        return None
    x = bound.step.node.input(reader.x)
    full, values = code_span(x), _values(bound, x)
    if not full[0] <= 0 <= full[1]:
        return None
    span = min(values.low, 0), max(values.high, 0)  # taps outside the image count 0
    weights, fields = reader.read(bound.step.node, prepared.data)
    if not weights.size:
        return None
    sums = ReachedSums(bound, x, weights.astype(np.int64), values, span, prepared.data.output, fields)
    fits = sums.output.bias.dtype == np.int64 or (sums.low.min() >= -(2**31) and sums.high.max() < 2**31)
    return sums if fits else None


def _values(bound: BoundOperator, x: Operand) -> Values:
    """Return the centred inputs that the tensor can hold in the model."""
    if x.index not in bound.held:
        return Values.between(*code_span(x))
    return Values(np.unique(bound.held[x.index].values.astype(np.int64)) - int(x.zero_point))


def decide(first: ReachedSums, second: ReachedSums) -> ProfileVerdict | None:
    """Compare the stages of two operators whose sums are the same; return None if these differ."""
    one, other = (s.bound.step.prepared for s in (first, second))
    assert one is not None  # guaranteed by bind
    assert other is not None
    if type(one.data) is not type(other.data) or not same_fields(one.data, other.data, without=("output",)):
        return None
    names = first.bound.profile, second.bound.profile
    if first.output.pipeline.dtype != second.output.pipeline.dtype:
        return None
    runs = _apart(first, second)
    if runs is None:
        return ProfileVerdict(
            *names, Word.UNDECIDED, "too many sums to compare one by one, and codes may fall as they rise"
        )
    span = f"sum from {int(first.low.min()):,} to {int(first.high.max()):,} gives the same code"
    if not runs:
        return ProfileVerdict(*names, Word.EQUAL, f"{_how(first, second)}: every {span}")
    divisors = np.gcd.reduce(first.weights, axis=1)
    possible = {channel: with_multiples(pairs, int(divisors[channel])) for channel, pairs in runs.items()}
    runs = {channel: pairs for channel, pairs in possible.items() if len(pairs)}
    if not runs:
        return ProfileVerdict(*names, Word.EQUAL, f"{_how(first, second)}, divisors of weights: every possible {span}")
    return _disprove(first, second, runs)


def _how(first: ReachedSums, second: ReachedSums) -> str:
    return "breakpoints" if first.is_monotone and second.is_monotone else "all sums"


def _apart(first: ReachedSums, second: ReachedSums) -> Mapping[int, Ints] | None:
    """Return the sums for which the codes of the two differ, by channel, as rows (from, below).

    The result is None if it would take too long. A channel with more than `MOST_RUNS` rows may lack some.
    """
    clamps = first.output.pipeline.clamp, second.output.pipeline.clamp
    limits = min(c.low for c in clamps), max(c.high for c in clamps)
    one = first.breakpoints(limits)
    other = second.breakpoints(limits, one)
    if one is None or other is None:
        return compared(first.output, second.output, first.low, first.high)
    parted = one != other
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    return {
        int(channel): np.stack([lower[parted[:, channel], channel], upper[parted[:, channel], channel]], axis=1)
        for channel in np.flatnonzero(parted.any(axis=0))
    }


def _disprove(first: ReachedSums, second: ReachedSums, runs: Mapping[int, Ints]) -> ProfileVerdict:
    """Return an input that reaches one of those sums, confirmed by runs; or the verdict that none can be reached.

    Raises:
        TflqError: One of the two refuses that input.
    """
    names = first.bound.profile, second.bound.profile
    # A place at the edge has fewer taps: a field includes it only if the inputs can be 0.
    is_exact, searched = bool(np.any(first.values.rising == 0)), 0
    for channel, field, targets in _by_width(first, runs):
        if searched == _MOST_SEARCHED:
            is_exact = False
            break
        searched += 1
        weights = first.weights[channel][field.taps]
        is_exact &= can_be_exact(weights, first.values) and len(targets) <= MOST_RUNS
        solution = values_for(weights, first.values, targets[:MOST_RUNS])
        if solution is None:
            continue
        values, reached = solution
        witness = compare(first.bound, second.bound, _input(first, field, values), accumulator=reached)
        if witness is None:
            return ProfileVerdict(
                *names, Word.UNDECIDED, f"roundings differ for accumulator {reached:,}, channel {channel}, runs do not"
            )
        one, other = (s.output.pipeline.stage.words for s in (first, second))
        other = "the same, by other constants" if one == other else other
        results = f"{witness.first} ({one}), {witness.second} ({other})"
        reason = f"for accumulator {reached:,}, channel {channel}: {results}"
        return ProfileVerdict(*names, Word.DIFFERS, reason, witness)
    if is_exact:
        return ProfileVerdict(*names, Word.EQUAL, "no input reaches the sums for which the stages give different codes")
    return ProfileVerdict(
        *names, Word.UNDECIDED, f"roundings differ in {len(runs)} channels; no input was found that shows it"
    )


def _by_width(sums: ReachedSums, runs: Mapping[int, Ints]) -> Iterator[tuple[int, ReceptiveField, Ints]]:
    """Yield every receptive field of the channels, those with most sums to reach first; their widest runs first."""
    widths = {channel: pairs[:, 1] - pairs[:, 0] for channel, pairs in runs.items()}
    for channel in sorted(runs, key=lambda channel: -int(widths[channel].sum())):
        for field in sums.fields(channel):
            yield channel, field, runs[channel][np.argsort(-widths[channel], kind="stable")]


def _input(sums: ReachedSums, field: ReceptiveField, values: Ints) -> dict[int, Array]:
    """Return the operator's inputs: these centred values in the channel's field, the one nearest to 0 elsewhere."""
    bound, x = sums.bound, sums.x
    codes: Array = np.full(int(np.prod(x.shape)), x.zero_point + sums.values.nearest(0), np.int64)
    codes[field.elements] = values + x.zero_point
    info = np.iinfo(bound.dtype(x.index))
    shaped = np.clip(codes, info.min, info.max).astype(bound.dtype(x.index)).reshape(x.shape)
    others = {t: np.zeros(bound.shape(t), bound.dtype(t)) for t in bound.inputs if t != x.index}
    return {x.index: shaped, **others}
