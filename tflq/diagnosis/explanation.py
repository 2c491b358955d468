"""Explain an operator's differing bits: compute hypotheses, and name those that reproduce every bit of the dump.

Pairs of mistakes: the second is searched under the first.

First mistakes are those that others can be combined with. Those that correct most elements, or bring the results
nearest to the dump's, are taken, and every other mistake is tried under each. Readings of taps and averages cannot be
combined further, so the best of them are tried under every such mistake, and with every other reading. If the operator
has a large image, the search uses a thinner one, and mistakes that reproduce it are then computed on the whole.

Hypotheses are every profile's kernel and arithmetic, every field of the arithmetic taken from another profile, and the
library of device mistakes (tflq/diagnosis/mistakes). If neither the dump's input nor its values in other orders
distinguish hypotheses, they are one cause with several names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.diagnosis.apart import shuffle
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.causes import Cause, Explanation, Spots, places
from tflq.diagnosis.certainty import Certainty, evidence_of
from tflq.diagnosis.crops import Thinner, thinned
from tflq.diagnosis.faults.case import Defect, DefectKind
from tflq.diagnosis.hypotheses import (
    Hypothesis,
    HypothesisKind,
    Raised,
    Results,
    are_equal,
    digest,
    hypotheses,
    of_orders,
    results,
    score,
)
from tflq.diagnosis.mistakes import Device, changes, mistakes, readings, reorderings
from tflq.diagnosis.mistakes.device import DeviceChange, Mistaken, Under, raising
from tflq.diagnosis.mistakes.products import taps_together
from tflq.engine.api.many import Part
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.typing import Array

T = TypeVar("T")

#: Profiles whose results differ by at most this many LSB differ by their roundings.
_NEAR = 2
#: Number of first mistakes taken by corrected elements, and by their distance.
_FIRST = 4


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The operator as the search sees it: the whole or a thinner image."""

    part: Part
    thinner: Thinner | None

    @classmethod
    def through(cls, alone: Part, thinner: Thinner | None) -> _View:
        """Return the operator on the thinner image, if there is one."""
        return cls(alone if thinner is None else thinner.alone, thinner)

    def of(self, device: Device) -> Results:
        """Return a device's results for the compared part."""
        made = results(device, self.part)
        return made if self.thinner is None else self.thinner.of(made)

    def is_exact(self, device: Device) -> bool:
        """Return whether a device reproduces every compared bit."""
        matching, elements = score(self.of(device), self.part.got)
        return matching == elements

    def best(self, found: Iterable[tuple[Device, T]], profile: Profile) -> list[list[T]]:
        """Return the mistakes that correct most elements, or come nearest to the dump's results; ties together."""
        base, got = self.of(Under(profile)), self.part.got
        own, near = score(base, got)[0], _distance(base, got)
        alike: dict[bytes, tuple[int, float, list[T]]] = {}
        for device, item in found:
            made = self.of(device)
            known = digest(made, self.part)
            if known is not None and known != digest(base, self.part):
                if known not in alike:
                    alike[known] = (score(made, got)[0], _distance(made, got), [])
                alike[known][2].append(item)
        by_elements = sorted((r for r in alike.values() if r[0] > own), key=lambda r: -r[0])[:_FIRST]
        by_distance = sorted((r for r in alike.values() if r[1] < near), key=lambda r: r[1])[:_FIRST]
        return list({id(r): r[2] for r in (*by_elements, *by_distance)}.values())


def pairs(alone: Part, profile: Profile, base: Mapping[int, Array], thinner: Thinner | None) -> Iterator[Hypothesis]:
    """Yield pairs of mistakes that reproduce every bit of the dump; `base` holds the profile's results."""
    view, whole = _View.through(alone, thinner), _View(alone, None)
    for alike in view.best(((c.device, c) for c in changes(view.part, profile)), profile):
        yield from _under(alike, alone, [n for n, d in _seconds(alike[0], view.part) if view.is_exact(d)])
    leading = ((c.device, c) for c in reorderings(alone, profile) if c.run is None)
    for alike in whole.best(leading, profile):
        turned = alike[0].of(alone)
        own = turned.run(turned.plan(profile))
        inside = _View.through(turned, thinned(turned, profile, own))
        yield from _under(alike, alone, [n for n, d in mistakes(inside.part, profile) if inside.is_exact(d)])
    yield from _with_readings(alone, profile, view)


def under_profiles(
    alone: Part, others: Iterable[Profile], base: Mapping[int, Array], thinner: Thinner | None
) -> Iterator[Hypothesis]:
    """Yield mistakes under other profiles that are far from `base` here, which has a fault or lacks one."""
    view = _View.through(alone, thinner)
    for other in others:
        if _farthest(results(Under(other), alone), base) <= _NEAR:
            continue
        names = {name for name, device in mistakes(view.part, other) if view.is_exact(device)}
        for name, device in mistakes(alone, other) if names else ():
            if name in names:
                yield Hypothesis(HypothesisKind.MISTAKES, f"{other.name}; and {name}", device)


def _farthest(made: Results, base: Results) -> float:
    """Return the largest difference in LSB; 0 if there is nothing to compare."""
    alike = [
        (value, base[t])
        for t, value in made.items()
        if t in base and value.shape == base[t].shape and value.dtype == base[t].dtype and value.dtype.kind in "iu"
    ]
    return max((float(np.abs(a.astype(np.int64) - b).max(initial=0)) for a, b in alike), default=0.0)


def _with_readings(alone: Part, profile: Profile, view: _View) -> Iterator[Hypothesis]:
    """Yield the best readings under every other mistake, and with every other reading."""
    best = view.best(((device, name) for name, device in readings(view.part, profile)), profile)
    leading = {name for alike in best for name in alike}
    together = taps_together(view.part, profile, leading)
    exact = {name for name, device in together if view.is_exact(device)}
    for name, device in taps_together(alone, profile, leading) if exact else ():
        if name in exact:
            yield Hypothesis(HypothesisKind.MISTAKES, name, device)
    fitting: dict[str, set[str]] = {}
    for change in changes(view.part, profile) if leading else ():
        for name, device in readings(change.of(view.part), change.first):
            if name in leading and view.is_exact(change.under(device)):
                fitting.setdefault(change.name, set()).add(name)
    for change in changes(alone, profile) if fitting else ():
        for name, device in readings(change.of(alone), change.first) if change.name in fitting else ():
            if name in fitting[change.name]:
                yield Hypothesis(HypothesisKind.MISTAKES, f"{change.name}; and {name}", change.under(device))


def _under(alike: Iterable[DeviceChange], alone: Part, names: list[str]) -> Iterator[Hypothesis]:
    """Yield the named mistakes under first ones that the search did not distinguish."""
    for first in alike if names else ():
        for name, device in _seconds(first, alone):
            if name in names:
                yield Hypothesis(HypothesisKind.MISTAKES, f"{first.name}; and {name}", device)


def _seconds(first: DeviceChange, part: Part) -> Iterator[Mistaken]:
    """Yield every mistake under the first one."""
    for name, device in mistakes(first.of(part), first.first):
        yield name, first.under(device)


def _distance(made: Results, got: Results) -> float:
    """Return the sum of absolute differences; infinite if there is nothing to compare."""
    total = 0.0
    for tensor, seen in got.items():
        value = made.get(tensor)
        if value is None or value.shape != seen.shape or value.dtype.kind not in "iuf":
            return float("inf")
        total += float(np.nansum(np.abs(value.astype(np.float64) - seen.astype(np.float64))))
    return total


#: For a large image, this many of the best partial mistakes are computed on the whole.
_SHOWN = 6


@dataclass(slots=True, eq=False)
class SameResults:
    """Hypotheses with the same result bits on the inputs seen so far."""

    matching: int
    members: list[Hypothesis] = field(default_factory=list)


def explain_operator(case: OperatorCase, defect: Defect | None = None) -> Explanation:
    """Score every hypothesis on all elements of the operator's results that the dump holds.

    Hypotheses that reproduce the first sample must reproduce the others, too. Of other hypotheses, only the best are
    computed on these. If a `defect` is known, no hypothesis about arithmetic is tried, with two exceptions. A
    hypothesis that reproduces every bit is likelier than a changed constant, elements in other places, or a result that
    only seems not to be computed. If nothing was computed, other profiles are tried: one may have that fault.
    """
    index, name, (matching, elements) = case.index, case.profile.name, case.score
    if matching == elements:
        return Explanation(index, name, matching, elements, ())
    search = _Search(case)
    places = _where([(values, part.got) for part, values in case.pairs])

    def explained(groups: list[SameResults], defect: Defect | None) -> Explanation:
        evidence = evidence_of(case.pairs, search.tried)
        parts = (separate(g, case.part()) if g.matching == elements else [g] for g in groups)
        causes = tuple(Cause(tuple(part.members), part.matching, elements) for some in parts for part in some)
        faults = tuple(search.faults.values())
        return Explanation(index, name, matching, elements, causes, evidence, places, faults=faults, defect=defect)

    if defect is None:
        return explained(search.groups(), None)
    if not defect.is_told or defect.kind in (DefectKind.ADDRESSING, DefectKind.PRECISION):
        named = explained(search.singles(only_orders=defect.is_told), None)
        is_flat = len({value for one in case.parts for got in one.got.values() for value in np.unique(got)}) < 2
        if named.certainty != Certainty.NONE or (named.fitting and defect.certainty == Certainty.NONE and not is_flat):
            return named
    return explained(search.of_profiles() if defect.kind == DefectKind.NOTHING else [], defect)


def prove(explanation: Explanation, alone: Part) -> Explanation:
    """Return the explanation; if the only cause lacks a proof that its names are one function, try one."""
    if len(explanation.exact) != 1 or explanation.exact[0].is_told:
        return explanation
    (only,) = explanation.exact
    if explanation.ranking.reached != Certainty.CERTAIN or not are_equal(only.members, alone):
        return explanation
    known = replace(only, is_proved=True)
    return replace(explanation, causes=tuple(known if cause is only else cause for cause in explanation.causes))


class _Search:
    """The search for hypotheses that reproduce one operator, and the number of tried ones with different results."""

    def __init__(self, case: OperatorCase) -> None:
        self._alone, *self._rest = case.parts
        self._profile, self._base, self._elements = case.profile, case.results(), case.score[1]
        self.tried: dict[HypothesisKind, int] = {}
        self.faults: dict[str, Raised] = {}

    def groups(self) -> list[SameResults]:
        """Return groups of hypotheses, best first. Pairs of mistakes are searched only if no other hypothesis fits."""
        alone, profile, base = self._alone, self._profile, self._base
        thinner = thinned(alone, profile, base)
        first = self._by_result(hypotheses(alone, profile), _hopeless(thinner, profile))
        self.tried = _tried(first)
        groups = sorted(_over(first, self._rest), key=lambda g: -g.matching)
        fits = self._fitting(groups)
        far = [by_name(g.members[0].name) for g in groups if g.members[0].kind == HypothesisKind.PROFILE]
        if not fits:
            found = chain(pairs(alone, profile, base, thinner), under_profiles(alone, far, base, thinner))
            return [*self._fitting(_over(self._by_result(_guard(found)), self._rest)), *groups]
        if any(member.kind == HypothesisKind.PROFILE for group in fits for member in group.members):
            return groups
        members = [member for group in fits for member in group.members]
        more = _guard(under_profiles(alone, far, base, thinner))
        kept = self._fitting(_over(self._by_result(chain(members, more)), self._rest))
        return [*kept, *(group for group in groups if group.matching < self._elements)]

    def of_profiles(self) -> list[SameResults]:
        """Return the groups of profiles that reproduce every bit."""
        return self._exact(hypotheses(self._alone, self._profile, only_profiles=True))

    def singles(self, *, only_orders: bool) -> list[SameResults]:
        """Return the groups of single hypotheses that reproduce every bit, or of those in orders and axes only."""
        return self._exact((of_orders if only_orders else hypotheses)(self._alone, self._profile))

    def _exact(self, found: Iterable[Hypothesis]) -> list[SameResults]:
        first = self._by_result(found)
        self.tried = _tried(first)
        return self._fitting(_over(first, self._rest))

    def _fitting(self, groups: Iterable[SameResults]) -> list[SameResults]:
        return [group for group in groups if group.matching == self._elements]

    def _by_result(self, candidates: Iterable[Hypothesis], hopeless: Container[str] = ()) -> list[SameResults]:
        return by_result(candidates, self._alone, self._base, hopeless, self.faults)


def _tried(groups: Sequence[SameResults]) -> dict[HypothesisKind, int]:
    """Return the number of different results of a kind and of all kinds before it; for pairs, its square."""
    of_profiles = sum(g.members[0].kind in (HypothesisKind.PROFILE, HypothesisKind.ARITHMETIC) for g in groups) + 1
    whole = len(groups) + 1
    return {
        HypothesisKind.PROFILE: of_profiles,
        HypothesisKind.ARITHMETIC: of_profiles,
        HypothesisKind.MISTAKE: whole,
        HypothesisKind.MISTAKES: whole**2,
    }


def _guard(found: Iterable[Hypothesis]) -> Iterator[Hypothesis]:
    """Yield hypotheses. If the search for two mistakes raises, yield one that raises in its place."""
    try:
        yield from found
    except TflqError:
        return
    except Exception as error:
        yield Hypothesis(HypothesisKind.MISTAKES, "two mistakes at once", raising(error))


def _over(groups: Sequence[SameResults], others: Sequence[Part]) -> list[SameResults]:
    """Return the groups of one sample, best first, over further samples, which may split them.

    Only the best partial groups are kept.
    """
    if not others:
        return list(groups)
    fits = sum(group.matching == groups[0].matching for group in groups)
    apart: list[SameResults] = []
    for group in groups[: max(fits, _SHOWN)]:
        parts: dict[tuple[bytes | None, ...], SameResults] = {}
        for member in group.members:
            computed = [results(member.device, other) for other in others]
            key = tuple(digest(values, other) for values, other in zip(computed, others, strict=True))
            if key not in parts:
                more = sum(score(values, other.got)[0] for values, other in zip(computed, others, strict=True))
                parts[key] = SameResults(group.matching + more)
            parts[key].members.append(member)
        apart += parts.values()
    return apart


def by_result(
    candidates: Iterable[Hypothesis],
    alone: Part,
    base: Results,
    hopeless: Container[str],
    faults: dict[str, Raised] | None = None,
) -> list[SameResults]:
    """Return hypotheses that change some element, grouped by results, best first; the most probable comes first.

    Mistakes that are `hopeless` are not computed. Those that raise are noted in `faults`.
    """
    own = digest(base, alone)
    groups: dict[bytes, SameResults] = {}
    for hypothesis in candidates:
        if hypothesis.kind == HypothesisKind.MISTAKE and hypothesis.name in hopeless:
            continue
        values = results(hypothesis.device, alone, hypothesis.name, faults)
        known = digest(values, alone)
        if known is None or known == own:
            continue
        if known not in groups:
            groups[known] = SameResults(score(values, alone.got)[0])
        groups[known].members.append(hypothesis)
    return sorted(groups.values(), key=lambda g: -g.matching)


def _hopeless(thinner: Thinner | None, profile: Profile) -> set[str]:
    """Return mistakes that leave elements of a thinner image unexplained, except the best; none for small operators."""
    if thinner is None:
        return set()
    scores: dict[str, int] = {}
    for name, device in mistakes(thinner.alone, profile):
        matching = score(thinner.of(results(device, thinner.alone)), thinner.alone.got)[0]
        scores[name] = max(matching, scores.get(name, 0))
    own, elements = score(thinner.of(thinner.alone.run(thinner.alone.plan(profile))), thinner.alone.got)
    best = sorted((matching for matching in scores.values() if matching > own), reverse=True)[:_SHOWN]
    return {name for name, matching in scores.items() if matching < elements and matching not in best}


def separate(group: SameResults, alone: Part) -> list[SameResults]:
    """Return the parts of a group that inputs with the same values in another order distinguish."""
    parts: dict[tuple[bytes | None, ...], SameResults] = {}
    others = list(shuffle(alone)) if len(group.members) > 1 else []
    for member in group.members:
        key = tuple(digest(results(member.device, other), alone) for other in others)
        parts.setdefault(key, SameResults(group.matching)).members.append(member)
    return list(parts.values())


def _where(compared: Sequence[tuple[Results, Results]]) -> Spots:
    """Return the common property of all differing elements of the first differing tensor, over all samples."""
    for tensor in compared[0][1]:
        pairs = [(values[tensor], got[tensor]) for values, got in compared if tensor in values and tensor in got]
        masks = [unequal(*pair) for pair in pairs if pair[0].shape == pair[1].shape == pairs[0][1].shape]
        if masks and any(mask.any() for mask in masks):
            return places(np.logical_or.reduce(masks))
    return Spots()
