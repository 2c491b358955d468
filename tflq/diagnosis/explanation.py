"""Why an operator's bits differ: hypotheses are computed, and those that reproduce every bit of the dump are named.

Hypotheses: every profile's kernel and arithmetic, every field of the arithmetic taken from another profile, and the
library of device mistakes (tflq/diagnosis/mistakes). Those that neither the dump's input nor its values in other
orders tell apart are one cause with several names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses import Hypothesis, Kind, device_of, hypotheses
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes import mistakes
from tflq.diagnosis.outcomes import Results, digest, results, score
from tflq.diagnosis.pairs import pairs, under_profiles
from tflq.diagnosis.placement import places
from tflq.diagnosis.probes import shuffled
from tflq.diagnosis.subsampling import Thinner, thinned
from tflq.inspection.difference import unequal
from tflq.ir import Model
from tflq.profiles import Profile, by_name
from tflq.surgery.part import Part
from tflq.verification.dump import Dump

Array = NDArray[Any]

#: Of a large image, so many of the best partial mistakes are computed on the whole.
_SHOWN = 6


class CauseVerdict(str, Enum):
    """What is known of why an operator differs."""

    SAME = "same"
    EXPLAINED = "explained"  # by one cause
    LIKELY = "likely"  # by one cause, but too few elements differ to exclude others, or by one profile and by mistakes
    AMBIGUOUS = "ambiguous"  # several causes reproduce every bit
    PARTIAL = "partial"  # the best one leaves at most half of the elements unexplained that the profile does
    UNDETERMINED = "undetermined"


class Certainty(str, Enum):
    """How much a cause that is named can be relied on."""

    CERTAIN = "certain"
    LIKELY = "likely"
    NONE = "none"


#: How many elements have to differ for a single cause to be certain: what is more improbable needs more of them.
_EVIDENCE = {Kind.PROFILE: 1, Kind.ARITHMETIC: 1, Kind.MISTAKE: 2, Kind.MISTAKES: 24}
#: The same where the cause does not reproduce another operator of the same type, or inputs are assumed.
_DOUBTED = 24


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Hypotheses whose results are the same bits on the dump's input and, of exact ones, on inputs of the same values
    in another order. `matching` of the dump's `elements` are reproduced. The first member is the most probable.
    """

    members: tuple[Hypothesis, ...]
    matching: int
    elements: int
    not_at: tuple[int, ...] = ()  # other operators of the same type that it does not reproduce

    @property
    def kind(self) -> Kind:
        """The kind of the most probable member."""
        return self.members[0].kind

    @property
    def name(self) -> str:
        """The name of the most probable member."""
        return self.members[0].name

    @property
    def also(self) -> tuple[str, ...]:
        """The other names."""
        return tuple(h.name for h in self.members[1:])

    @property
    def is_a_profile(self) -> bool:
        """Whether a profile is among the members."""
        return any(member.kind == Kind.PROFILE for member in self.members)

    @property
    def exact(self) -> bool:
        """Whether it reproduces every bit."""
        return self.matching == self.elements


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One operator. `causes` change some element, best first; `matching` is what the profile reproduces.

    `telling` of the elements that differ are no end of their type in the dump: whatever overshoots makes an end.
    `assumed` inputs were computed, not dumped: where there are any, what makes them may be at fault instead.
    Where none of `causes` is exact, the cause is undetermined.
    """

    index: int
    profile: str
    matching: int
    elements: int
    causes: tuple[Cause, ...]
    telling: int = 0
    places: tuple[str, ...] = ()  # where the differing elements of its first differing tensor sit
    alike: tuple[int, ...] = ()  # other operators of the same type that exact causes were held against
    assumed: tuple[int, ...] = ()
    seen_alike: int = 0  # how many elements of these differ, where a cause reproduces them all

    @property
    def fitting(self) -> tuple[Cause, ...]:
        """All causes that reproduce every bit: where there are several, this input does not tell them apart.

        Where one reproduces other operators of the same type as well, those that do not are left out.
        """
        fitting = [cause for cause in self.causes if cause.exact]
        return tuple([cause for cause in fitting if not cause.not_at] or fitting)

    @property
    def exact(self) -> tuple[Cause, ...]:
        """The likeliest of those that fit: profiles, if there are any.

        What a runtime is known to compute is likelier than a mistake that none is known to make.
        """
        return tuple([cause for cause in self.fitting if cause.is_a_profile] or self.fitting)

    @property
    def less_likely(self) -> tuple[Cause, ...]:
        """Mistakes that reproduce every bit where a profile does, too."""
        return tuple(cause for cause in self.fitting if cause not in self.exact)

    @property
    def only_here(self) -> tuple[Cause, ...]:
        """Causes that reproduce every bit, but are left out as they do not reproduce operators of the same type."""
        return tuple(cause for cause in self.causes if cause.exact and cause not in self.fitting)

    @property
    def certainty(self) -> Certainty:
        """Whether the cause is certain, likely, or neither: that one cause is, or that one of several has to be."""
        return {
            CauseVerdict.EXPLAINED: Certainty.CERTAIN,
            CauseVerdict.LIKELY: Certainty.LIKELY,
            CauseVerdict.AMBIGUOUS: Certainty.LIKELY,
        }.get(self.verdict, Certainty.NONE)

    @property
    def verdict(self) -> CauseVerdict:
        """Whether the cause is known."""
        if self.matching == self.elements:
            return CauseVerdict.SAME
        if len(self.exact) > 1:
            return CauseVerdict.AMBIGUOUS
        if self.exact:
            needed = _DOUBTED if self.exact[0].not_at or self.assumed else _EVIDENCE[self.exact[0].kind]
            enough = self.telling + self.seen_alike >= needed
            alone = enough and not self.less_likely
            return CauseVerdict.EXPLAINED if alone else CauseVerdict.LIKELY
        best = self.causes[0].matching if self.causes else 0
        halved = 2 * (self.elements - best) <= self.elements - self.matching
        return CauseVerdict.PARTIAL if halved else CauseVerdict.UNDETERMINED


@dataclass(slots=True, eq=False)
class Group:
    """Hypotheses whose results are the same bits on the inputs seen so far."""

    matching: int
    members: list[Hypothesis] = field(default_factory=list)


def explain_operator(
    model: Model, dump: Dump, index: int, profile: Profile, others: Sequence[Dump] = ()
) -> Explanation:
    """Score every hypothesis on all elements of the operator's results that the dump holds.

    `others` are further samples: what reproduces the first has to reproduce them, too. Of what does not, only the best
    are computed on them.
    """
    alone, *rest = (operator_alone(model, one, index, profile) for one in (dump, *others))
    base = alone.run(alone.plan(profile))
    own = Group(score(base, alone.got)[0], [Hypothesis(Kind.PROFILE, profile.name, device_of(profile))])
    elements = sum(value.size for one in (alone, *rest) for value in one.got.values())
    (whole,) = _over([own], rest)
    causes: tuple[Cause, ...] = ()
    if whole.matching < elements:
        thinner = thinned(alone, profile, base)
        groups = by_result(hypotheses(alone, profile), alone, base, _hopeless(thinner, profile))
        groups = sorted(_over(groups, rest), key=lambda g: -g.matching)
        far = [by_name(g.members[0].name) for g in groups if g.members[0].kind == Kind.PROFILE]
        if not any(g.matching == elements for g in groups):
            found = chain(pairs(alone, profile, base, thinner), under_profiles(alone, far, base, thinner))
            both = by_result(found, alone, base, set())
            groups = [*(g for g in _over(both, rest) if g.matching == elements), *groups]
        elif not any(m.kind == Kind.PROFILE for g in groups if g.matching == elements for m in g.members):
            fitting = [member for g in groups if g.matching == elements for member in g.members]
            both = by_result((*fitting, *under_profiles(alone, far, base, thinner)), alone, base, set())
            kept = (g for g in _over(both, rest) if g.matching == elements)
            groups = [*kept, *(g for g in groups if g.matching < elements)]
        parts = (separated(g, alone) if g.matching == elements else [g] for g in groups)
        causes = tuple(Cause(tuple(part.members), part.matching, elements) for some in parts for part in some)
    telling = 0 if whole.matching == elements else sum(_telling(one, profile) for one in (alone, *rest))
    return Explanation(index, profile.name, whole.matching, elements, causes, telling, _where(base, alone.got))


def _telling(alone: Part, profile: Profile) -> int:
    """How many of the results differ from the profile's and are neither the lowest nor the highest of their type."""
    found, values = 0, alone.run(alone.plan(profile))
    for tensor, dumped in alone.got.items():
        if (values[tensor].shape, values[tensor].dtype) != (dumped.shape, dumped.dtype):
            continue
        apart = unequal(values[tensor], dumped)
        if dumped.dtype.kind in "iu":
            limits = np.iinfo(dumped.dtype)
            apart = apart & (dumped != limits.min) & (dumped != limits.max)
        found += int(np.count_nonzero(apart))
    return found


def _over(groups: Sequence[Group], others: Sequence[Part]) -> list[Group]:
    """Groups of one sample, best first, over further ones, which may part them; of partial ones only the best."""
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


def by_result(candidates: Iterable[Hypothesis], alone: Part, base: Results, hopeless: Container[str]) -> list[Group]:
    """Hypotheses that change some element, by their results, best first; the most probable of equals comes first.

    Mistakes that are `hopeless` are not computed.
    """
    own = digest(base, alone)
    groups: dict[bytes, Group] = {}
    for hypothesis in candidates:
        if hypothesis.kind == Kind.MISTAKE and hypothesis.name in hopeless:
            continue
        values = results(hypothesis.device, alone)
        known = digest(values, alone)
        if known is None or known == own:
            continue
        if known not in groups:
            groups[known] = Group(score(values, alone.got)[0])
        groups[known].members.append(hypothesis)
    return sorted(groups.values(), key=lambda g: -g.matching)


def _hopeless(thinner: Thinner | None, profile: Profile) -> set[str]:
    """Mistakes that leave elements of a thinner image unexplained, but for the best. None of a small operator."""
    if thinner is None:
        return set()
    scores: dict[str, int] = {}
    for name, device in mistakes(thinner.alone, profile):
        matching = score(thinner.of(results(device, thinner.alone)), thinner.alone.got)[0]
        scores[name] = max(matching, scores.get(name, 0))
    own, elements = score(thinner.of(thinner.alone.run(thinner.alone.plan(profile))), thinner.alone.got)
    best = sorted((matching for matching in scores.values() if matching > own), reverse=True)[:_SHOWN]
    return {name for name, matching in scores.items() if matching < elements and matching not in best}


def separated(group: Group, alone: Part) -> list[Group]:
    """A group in parts that inputs of the same values in another order tell apart."""
    parts: dict[tuple[bytes | None, ...], Group] = {}
    others = list(shuffled(alone)) if len(group.members) > 1 else []
    for member in group.members:
        key = tuple(digest(results(member.device, other), alone) for other in others)
        parts.setdefault(key, Group(group.matching)).members.append(member)
    return list(parts.values())


def _where(values: Mapping[int, Array], got: Results) -> tuple[str, ...]:
    for tensor, dumped in got.items():
        if values[tensor].shape == dumped.shape and (apart := unequal(values[tensor], dumped)).any():
            return places(apart)
    return ()
