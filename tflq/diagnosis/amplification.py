"""The effect of one operator's difference on all later ones: the rest of the model runs from both results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.comparison.inspection.difference import Difference, difference, merge
from tflq.comparison.verification.dump import Dump
from tflq.diagnosis.choices import Choice, choice, chooses
from tflq.diagnosis.localization import operator_alone
from tflq.engine.api.part import part_of, reads
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.typing import Array

Values = Mapping[int, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
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
    spreads: tuple[Spread, ...] = ()
    choices: tuple[Choice, ...] = ()
    reason: str = ""
    effect: float = 0.0

    @property
    def flipped(self) -> int:
        """The number of rows of graph outputs that choose another element."""
        return sum(choice.flipped for choice in self.choices)

    @property
    def reached(self) -> tuple[Spread, ...]:
        """The later operators that the difference reaches."""
        return tuple(spread for spread in self.spreads if spread.difference.differing)

    @property
    def farthest(self) -> Spread | None:
        """The first of the later operators at which it is largest; None if it reaches none."""
        return max(self.reached, key=lambda spread: spread.difference.largest, default=None)


def amplify(model: Model, dump: Dump, index: int, profile: Profile) -> Amplification:
    """Run the operators after operator `index` twice: from the profile's results and from the dump's.

    All other inputs are equal.
    """
    try:
        alone = operator_alone(model, dump, index, profile)
        expected = alone.run(alone.plan(profile))
        before = {**_needed_before(model, dump, index, profile), **expected}
        return _compare(
            model, index, _rest(model, index, before, profile), _rest(model, index, {**before, **alone.got}, profile)
        )
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
        spreads.append(Spread(op.index, op.name, largest))
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
