"""Operators that sum products with constant weights: equal if their stages agree on all possible sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.equality import same_fields
from tflq.engine.kernels.families.contraction import Output, code_span
from tflq.engine.kernels.kernel import Operand
from tflq.engine.numerics.contract import Range
from tflq.proof.fields import READERS, Fields, ReceptiveField
from tflq.proof.operator import Bound, compare
from tflq.proof.reach import Values, can_be_exact, values_for, with_multiples
from tflq.proof.steps import MOST_RUNS, bias_of, breakpoints, compared, never_falls
from tflq.proof.verdicts import Verdict, Word
from tflq.typing import Array

Ints = NDArray[np.int64]

#: Numbers of channels, and of their sets of taps, in which an input is searched that reaches such a sum.
_MOST_SEARCHED = 4096


@dataclass(frozen=True, eq=False)
class Sums:
    """An operator as sums of products: weights (C, K), centred, the range of centred inputs, and the output stage.

    `x` is the operand of the inputs, `values` are the centred ones that it can hold in the model, and `span` is their
    range with 0. `fields` gives a channel's inputs at different places: any other place has a subset of one of these.
    """

    bound: Bound
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

    def breakpoints(self, limits: tuple[int, int]) -> Ints | None:
        """Return the sums at which codes between `limits` begin; None if codes may fall or the stage is unknown."""
        if limits not in self._breakpoints:
            found = breakpoints(self.output, self.low, self.high, limits) if self.is_monotone else None
            self._breakpoints[limits] = found
        return self._breakpoints[limits]


def sums_of(bound: Bound) -> Sums | None:
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
    sums = Sums(bound, x, weights.astype(np.int64), values, span, prepared.data.output, fields)
    fits = sums.output.bias.dtype == np.int64 or (sums.low.min() >= -(2**31) and sums.high.max() < 2**31)
    return sums if fits else None


def _values(bound: Bound, x: Operand) -> Values:
    """Return the centred inputs that the tensor can hold in the model."""
    if x.index not in bound.held:
        return Values.between(*code_span(x))
    return Values(np.unique(bound.held[x.index].values.astype(np.int64)) - int(x.zero_point))


def decide(first: Sums, second: Sums) -> Verdict | None:
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
        return Verdict(*names, Word.UNDECIDED, "too many sums to compare one by one, and codes may fall as they rise")
    span = f"sum from {int(first.low.min()):,} to {int(first.high.max()):,} gives the same code"
    if not runs:
        return Verdict(*names, Word.EQUAL, f"{_how(first, second)}: every {span}")
    divisors = np.gcd.reduce(first.weights, axis=1)
    possible = {channel: with_multiples(pairs, int(divisors[channel])) for channel, pairs in runs.items()}
    runs = {channel: pairs for channel, pairs in possible.items() if len(pairs)}
    if not runs:
        return Verdict(*names, Word.EQUAL, f"{_how(first, second)}, divisors of weights: every possible {span}")
    return _disprove(first, second, runs)


def _how(first: Sums, second: Sums) -> str:
    return "breakpoints" if first.is_monotone and second.is_monotone else "all sums"


def _apart(first: Sums, second: Sums) -> Mapping[int, Ints] | None:
    """Return the sums for which the codes of the two differ, by channel, as rows (from, below).

    The result is None if it would take too long. A channel with more than `MOST_RUNS` rows may lack some.
    """
    clamps = first.output.pipeline.clamp, second.output.pipeline.clamp
    limits = min(c.low for c in clamps), max(c.high for c in clamps)
    one, other = first.breakpoints(limits), second.breakpoints(limits)
    if one is None or other is None:
        return compared(first.output, second.output, first.low, first.high)
    parted = one != other
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    return {
        int(channel): np.stack([lower[parted[:, channel], channel], upper[parted[:, channel], channel]], axis=1)
        for channel in np.flatnonzero(parted.any(axis=0))
    }


def _disprove(first: Sums, second: Sums, runs: Mapping[int, Ints]) -> Verdict:
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
            return Verdict(
                *names, Word.UNDECIDED, f"stages differ at sum {reached:,} of channel {channel}, runs do not"
            )
        stages = [type(s.output.pipeline.stage).__name__ for s in (first, second)]
        where = f"sum {reached:,} of channel {channel}"
        return Verdict(*names, Word.DIFFERS, f"{where}: {stages[0]}, {stages[1]}", witness)
    if is_exact:
        return Verdict(*names, Word.EQUAL, "no input reaches the sums for which the stages give different codes")
    return Verdict(*names, Word.UNDECIDED, f"stages differ in {len(runs)} channels; no input was found that shows it")


def _by_width(sums: Sums, runs: Mapping[int, Ints]) -> Iterator[tuple[int, ReceptiveField, Ints]]:
    """Yield every receptive field of the channels, those with most sums to reach first; their widest runs first."""
    widths = {channel: pairs[:, 1] - pairs[:, 0] for channel, pairs in runs.items()}
    for channel in sorted(runs, key=lambda channel: -int(widths[channel].sum())):
        for field in sums.fields(channel):
            yield channel, field, runs[channel][np.argsort(-widths[channel], kind="stable")]


def _input(sums: Sums, field: ReceptiveField, values: Ints) -> dict[int, Array]:
    """Return the operator's inputs: these centred values in the channel's field, the one nearest to 0 elsewhere."""
    bound, x = sums.bound, sums.x
    codes: Array = np.full(int(np.prod(x.shape)), x.zero_point + sums.values.nearest(0), np.int64)
    codes[field.elements] = values + x.zero_point
    info = np.iinfo(bound.dtype(x.index))
    shaped = np.clip(codes, info.min, info.max).astype(bound.dtype(x.index)).reshape(x.shape)
    others = {t: np.zeros(bound.shape(t), bound.dtype(t)) for t in bound.inputs if t != x.index}
    return {x.index: shaped, **others}
