"""The effect of one operator's difference on all later ones: the rest of the model runs from both results.

The elements that rows of a graph output choose: whether a difference changes an arg-max.

Rank differing operators by the consequence of each difference for the model's outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inspection.difference import Difference, difference, merge
from tflq.comparison.results import Located
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.localization import most_telling, trust
from tflq.engine.api.many import part_of, reads
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class RowChoice:
    """The arg-max along the last axis of a graph output: of `rows` rows, `flipped` choose another element.

    `first` is the first flipped row, and its elements chosen before and after.
    """

    tensor: int
    rows: int
    flipped: int
    first: tuple[int, int, int] | None = None


def chooses(expected: Array, got: Array) -> bool:
    """Return whether an arg-max along the last axis is meaningful: equal shapes, more than one number."""
    is_row = expected.ndim > 0 and expected.size > 0 and expected.shape[-1] > 1
    return is_row and expected.shape == got.shape and expected.dtype.kind in "iuf"


def choice(tensor: int, expected: Array, got: Array) -> RowChoice:
    """Compare the arg-max of each row of a graph output."""
    before, after = (np.argmax(v.reshape(-1, v.shape[-1]), axis=1) for v in (expected, got))
    rows = np.flatnonzero(before != after)
    first = (int(rows[0]), int(before[rows[0]]), int(after[rows[0]])) if len(rows) else None
    return RowChoice(tensor, len(before), len(rows), first)


def add(one: RowChoice | None, other: RowChoice) -> RowChoice:
    """Return the counts of two samples of one output together; `first` is counted from the first sample's rows."""
    if one is None:
        return other
    first = other.first and (other.first[0] + one.rows, *other.first[1:])
    return RowChoice(one.tensor, one.rows + other.rows, one.flipped + other.flipped, one.first or first)


Values = Mapping[int, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """The effect at one later operator: how its results differ if nothing else differs."""

    index: int
    op: str
    difference: Difference


@dataclass(frozen=True, slots=True, eq=False)
class Amplification:
    """The growth of operator `index`'s difference. `reason` is the reason if the rest of the model cannot run.

    `effect` is the largest change of an element of a graph output, as a share of the output's largest magnitude.
    """

    index: int
    spreads: tuple[Reach, ...] = ()
    choices: tuple[RowChoice, ...] = ()
    reason: str = ""
    effect: float = 0.0

    @property
    def flipped(self) -> int:
        """The number of rows of graph outputs that choose another element."""
        return sum(choice.flipped for choice in self.choices)

    @property
    def reached(self) -> tuple[Reach, ...]:
        """The later operators that the difference reaches."""
        return tuple(spread for spread in self.spreads if spread.difference.differing)

    @property
    def farthest(self) -> Reach | None:
        """The first of the later operators at which it is largest; None if it reaches none."""
        return max(self.reached, key=lambda spread: spread.difference.largest, default=None)


def amplify(case: OperatorCase) -> Amplification:
    """Run the operators after a case's twice, in its first sample: from the profile's results and from the dump's.

    All other inputs are equal.
    """
    model, index, profile = case.model, case.index, case.profile
    try:
        before = {**_needed_before(model, case.dumps[0], index, profile), **case.results()}
        device = {**before, **case.part().got}
        return _compare(model, index, *(_rest(model, index, values, profile) for values in (before, device)))
    except TflqError as error:
        return Amplification(index, reason=str(error))


def _rest(model: Model, index: int, values: Values, profile: Profile) -> dict[int, Array]:
    """Return `values` and the results of all operators after `index` on them."""
    rest = part_of(model, _after(model, index), values)
    return {**values, **rest.run(rest.plan(profile))}


def _after(model: Model, index: int) -> range:
    return range(index + 1, len(view(model).ops))


def _needed_before(model: Model, dump: Dump, index: int, profile: Profile) -> dict[int, Array]:
    """Return earlier values that later operators read: the dump's, or computed from the model's inputs."""
    needed = set(reads(model, _after(model, index))) - set(view(model).op(index).writes)
    known = {t: dump.tensors[t] for t in needed if t in dump.tensors}
    if needed <= set(known):
        return known
    before = part_of(model, range(index + 1), dump.tensors)
    return {**before.run(before.plan(profile)), **known}


def _compare(model: Model, index: int, expected: Values, got: Values) -> Amplification:
    graph = view(model)
    spreads = []
    for op in graph.ops[index + 1 :]:
        results = [t for t in op.writes if t in expected and t in got]
        largest = merge(difference(expected[t], got[t]) for t in results)
        spreads.append(Reach(op.index, op.name, largest))
    pairs = [(t, expected[t], got[t]) for t in dict.fromkeys(graph.outputs) if t in expected and t in got]
    choices = tuple(choice(*pair) for pair in pairs if chooses(*pair[1:]))
    effect = max((_change(*pair[1:]) for pair in pairs), default=0.0)
    return Amplification(index, tuple(spreads), choices, effect=effect)


def _change(expected: Array, got: Array) -> float:
    """Return the largest change of an element as a share of the largest magnitude; 1 for other shapes, or NaN."""
    if expected.shape != got.shape:
        return 1.0
    if expected.dtype.kind not in "iuf" or not expected.size:
        return float(not difference(expected, got).same)
    one, other = expected.astype(np.float64), got.astype(np.float64)
    change = float(np.max(np.abs(one - other)))
    if not np.isfinite(change):
        return float(not difference(expected, got).same)
    return change / max(float(np.max(np.abs(one))), np.finfo(np.float64).tiny)


#: Number of operators whose differences are followed through the model; the model runs twice for each.
_FOLLOWED = 8
#: Differences of floats that another order of sums or another libm makes, in ULP of the tensor's largest magnitude.
_NOISE = 8


def by_consequence(
    differing: Sequence[Located],
    model: Model,
    samples: Sequence[Dump],
    by_sample: Sequence[Sequence[Located]],
    profile: Profile,
) -> tuple[Amplification, ...]:
    """Return the growth of differences by themselves, each in the sample in which it is largest, the worst first.

    The worst flips the most choices of the outputs, then changes the outputs most. The noise of floats comes last.
    """
    chosen = sorted(differing, key=is_noise)[:_FOLLOWED]  # otherwise in order of execution
    rows = []
    for operator in chosen:
        k = most_telling(by_sample, operator.index)
        growth = amplify(OperatorCase(model, (trust(samples[k], by_sample[k]),), operator.index, profile))
        rows.append(((is_noise(operator), -growth.flipped, -growth.effect, operator.index), growth))
    return tuple(growth for _, growth in sorted(rows, key=lambda row: row[0]))


def is_noise(operator: Located) -> bool:
    """Return whether an operator's differences are no larger than those of another order of sums."""
    apart = [d for d in operator.differences.values() if not d.same]
    return bool(apart) and all(d.unit == "ULP" and d.at_scale is not None and d.at_scale <= _NOISE for d in apart)
