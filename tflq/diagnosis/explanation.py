"""Explain an operator's differing bits: compute hypotheses, and name those that reproduce every bit of the dump.

Hypotheses are every profile's kernel and arithmetic, every field of the arithmetic taken from another profile, and the
library of device mistakes (tflq/diagnosis/mistakes). If neither the dump's input nor its values in other orders
distinguish hypotheses, they are one cause with several names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.comparison.verification.dump import Dump
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.certainty import Certainty, evidence_of
from tflq.diagnosis.equality import are_equal
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.diagnosis.hypotheses import Hypothesis, Kind, hypotheses, of_orders
from tflq.diagnosis.localization import operators_alone
from tflq.diagnosis.mistakes import mistakes
from tflq.diagnosis.mistakes.device import raising
from tflq.diagnosis.outcomes import Fault, Results, digest, results, score
from tflq.diagnosis.pairs import pairs, under_profiles
from tflq.diagnosis.placement import Places, places
from tflq.diagnosis.probes import shuffle
from tflq.diagnosis.subsampling import Thinner, thinned
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.ir import Model

#: For a large image, this many of the best partial mistakes are computed on the whole.
_SHOWN = 6


@dataclass(slots=True, eq=False)
class Group:
    """Hypotheses with the same result bits on the inputs seen so far."""

    matching: int
    members: list[Hypothesis] = field(default_factory=list)


def explain_operator(
    model: Model, dump: Dump, index: int, profile: Profile, others: Sequence[Dump] = (), defect: Defect | None = None
) -> Explanation:
    """Score every hypothesis on all elements of the operator's results that the dump holds.

    `others` are further samples: hypotheses that reproduce the first must reproduce them, too. Of the others, only the
    best are computed on them. If a `defect` is known, no hypothesis about arithmetic is tried, with two exceptions. A
    hypothesis that reproduces every bit is likelier than a changed constant, elements in other places, or a result that
    only seems not to be computed. If nothing was computed, other profiles are tried: one may have that fault.
    """
    alone, *rest = operators_alone(model, (dump, *others), index, profile)
    bases = [one.run(one.plan(profile)) for one in (alone, *rest)]
    matching = sum(score(base, one.got)[0] for base, one in zip(bases, (alone, *rest), strict=True))
    elements = sum(value.size for one in (alone, *rest) for value in one.got.values())
    if matching == elements:
        return Explanation(index, profile.name, matching, elements, ())
    search = _Search(alone, rest, profile, bases[0], elements)
    places = _where([(base, one.got) for base, one in zip(bases, (alone, *rest), strict=True)])

    def explained(groups: list[Group], defect: Defect | None) -> Explanation:
        evidence = evidence_of(list(zip((alone, *rest), bases, strict=True)), search.tried)
        parts = (separate(g, alone) if g.matching == elements else [g] for g in groups)
        causes = tuple(Cause(tuple(part.members), part.matching, elements) for some in parts for part in some)
        faults = tuple(search.faults.values())
        return Explanation(
            index, profile.name, matching, elements, causes, evidence, places, faults=faults, defect=defect
        )

    if defect is None:
        return explained(search.groups(), None)
    if not defect.is_told or defect.kind in (DefectKind.ADDRESSING, DefectKind.PRECISION):
        named = explained(search.singles(only_orders=defect.is_told), None)
        is_flat = len({value for one in (alone, *rest) for got in one.got.values() for value in np.unique(got)}) < 2
        if named.certainty != Certainty.NONE or (named.fitting and defect.certainty == Certainty.NONE and not is_flat):
            return named
    return explained(search.of_profiles() if defect.kind == DefectKind.NOTHING else [], defect)


def prove(explanation: Explanation, alone: Part) -> Explanation:
    """Return the explanation; if the only cause lacks a proof that its names are one function, try one."""
    if len(explanation.exact) != 1 or explanation.exact[0].is_told:
        return explanation
    (only,) = explanation.exact
    if explanation.reached != Certainty.CERTAIN or not are_equal(only.members, alone):
        return explanation
    known = replace(only, is_proved=True)
    return replace(explanation, causes=tuple(known if cause is only else cause for cause in explanation.causes))


class _Search:
    """The search for hypotheses that reproduce one operator, and the number of tried ones with different results."""

    def __init__(self, alone: Part, rest: Sequence[Part], profile: Profile, base: Results, elements: int) -> None:
        self._alone, self._rest, self._profile, self._base, self._elements = alone, rest, profile, base, elements
        self.tried: dict[Kind, int] = {}
        self.faults: dict[str, Fault] = {}

    def groups(self) -> list[Group]:
        """Return groups of hypotheses, best first. Pairs of mistakes are searched only if no other hypothesis fits."""
        alone, profile, base = self._alone, self._profile, self._base
        thinner = thinned(alone, profile, base)
        first = self._by_result(hypotheses(alone, profile), _hopeless(thinner, profile))
        self.tried = _tried(first)
        groups = sorted(_over(first, self._rest), key=lambda g: -g.matching)
        fits = self._fitting(groups)
        far = [by_name(g.members[0].name) for g in groups if g.members[0].kind == Kind.PROFILE]
        if not fits:
            found = chain(pairs(alone, profile, base, thinner), under_profiles(alone, far, base, thinner))
            return [*self._fitting(_over(self._by_result(_guard(found)), self._rest)), *groups]
        if any(member.kind == Kind.PROFILE for group in fits for member in group.members):
            return groups
        members = [member for group in fits for member in group.members]
        more = _guard(under_profiles(alone, far, base, thinner))
        kept = self._fitting(_over(self._by_result(chain(members, more)), self._rest))
        return [*kept, *(group for group in groups if group.matching < self._elements)]

    def of_profiles(self) -> list[Group]:
        """Return the groups of profiles that reproduce every bit."""
        return self._exact(hypotheses(self._alone, self._profile, only_profiles=True))

    def singles(self, *, only_orders: bool) -> list[Group]:
        """Return the groups of single hypotheses that reproduce every bit, or of those in orders and axes only."""
        return self._exact((of_orders if only_orders else hypotheses)(self._alone, self._profile))

    def _exact(self, found: Iterable[Hypothesis]) -> list[Group]:
        first = self._by_result(found)
        self.tried = _tried(first)
        return self._fitting(_over(first, self._rest))

    def _fitting(self, groups: Iterable[Group]) -> list[Group]:
        return [group for group in groups if group.matching == self._elements]

    def _by_result(self, candidates: Iterable[Hypothesis], hopeless: Container[str] = ()) -> list[Group]:
        return by_result(candidates, self._alone, self._base, hopeless, self.faults)


def _tried(groups: Sequence[Group]) -> dict[Kind, int]:
    """Return the number of different results of a kind and of all kinds before it; for pairs, its square."""
    of_profiles = sum(g.members[0].kind in (Kind.PROFILE, Kind.ARITHMETIC) for g in groups) + 1
    whole = len(groups) + 1
    return {Kind.PROFILE: of_profiles, Kind.ARITHMETIC: of_profiles, Kind.MISTAKE: whole, Kind.MISTAKES: whole**2}


def _guard(found: Iterable[Hypothesis]) -> Iterator[Hypothesis]:
    """Yield hypotheses. If the search for two mistakes raises, yield one that raises in its place."""
    try:
        yield from found
    except TflqError:
        return
    except Exception as error:
        yield Hypothesis(Kind.MISTAKES, "two mistakes at once", raising(error))


def _over(groups: Sequence[Group], others: Sequence[Part]) -> list[Group]:
    """Return the groups of one sample, best first, over further samples, which may split them.

    Only the best partial groups are kept.
    """
    if not others:
        return list(groups)
    fits = sum(group.matching == groups[0].matching for group in groups)
    apart: list[Group] = []
    for group in groups[: max(fits, _SHOWN)]:
        parts: dict[tuple[bytes | None, ...], Group] = {}
        for member in group.members:
            computed = [results(member.device, other) for other in others]
            key = tuple(digest(values, other) for values, other in zip(computed, others, strict=True))
            if key not in parts:
                more = sum(score(values, other.got)[0] for values, other in zip(computed, others, strict=True))
                parts[key] = Group(group.matching + more)
            parts[key].members.append(member)
        apart += parts.values()
    return apart


def by_result(
    candidates: Iterable[Hypothesis],
    alone: Part,
    base: Results,
    hopeless: Container[str],
    faults: dict[str, Fault] | None = None,
) -> list[Group]:
    """Return hypotheses that change some element, grouped by results, best first; the most probable comes first.

    Mistakes that are `hopeless` are not computed. Those that raise are noted in `faults`.
    """
    own = digest(base, alone)
    groups: dict[bytes, Group] = {}
    for hypothesis in candidates:
        if hypothesis.kind == Kind.MISTAKE and hypothesis.name in hopeless:
            continue
        values = results(hypothesis.device, alone, hypothesis.name, faults)
        known = digest(values, alone)
        if known is None or known == own:
            continue
        if known not in groups:
            groups[known] = Group(score(values, alone.got)[0])
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


def separate(group: Group, alone: Part) -> list[Group]:
    """Return the parts of a group that inputs with the same values in another order distinguish."""
    parts: dict[tuple[bytes | None, ...], Group] = {}
    others = list(shuffle(alone)) if len(group.members) > 1 else []
    for member in group.members:
        key = tuple(digest(results(member.device, other), alone) for other in others)
        parts.setdefault(key, Group(group.matching)).members.append(member)
    return list(parts.values())


def _where(compared: Sequence[tuple[Results, Results]]) -> Places:
    """Return the common property of all differing elements of the first differing tensor, over all samples."""
    for tensor in compared[0][1]:
        pairs = [(values[tensor], got[tensor]) for values, got in compared if tensor in values and tensor in got]
        masks = [unequal(*pair) for pair in pairs if pair[0].shape == pair[1].shape == pairs[0][1].shape]
        if masks and any(mask.any() for mask in masks):
            return places(np.logical_or.reduce(masks))
    return Places()
