"""Why an operator's bits differ: hypotheses are computed, and those that reproduce every bit of the dump are named.

Hypotheses: every profile's kernel and arithmetic, every field of the arithmetic taken from another profile, and the
library of device mistakes (tflq/verification/mistakes). Those that neither the dump's input nor its values in other
orders tell apart are one cause with several names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.dump import Dump
from tflq.diagnosis.hypotheses import device_of, hypotheses
from tflq.diagnosis.localization import Alone, operator_alone
from tflq.diagnosis.mistakes import Device, mistakes
from tflq.diagnosis.placement import places
from tflq.diagnosis.probes import shuffled
from tflq.diagnosis.subsampling import thinned
from tflq.errors import TflqError
from tflq.inspection.difference import unequal
from tflq.ir import Model
from tflq.profiles import Profile

Array = NDArray[Any]
#: By original tensor index.
Results = Mapping[int, Array]

#: Of a large image, so many of the best partial mistakes are computed on the whole.
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause and how many of the elements it reproduces. `kind` is "profile", "arithmetic" or "mistake".

    `also` are other names, less probable, whose results are the same bits on the dump's input and, of exact ones, on
    inputs of the same values in another order.
    """

    kind: str
    name: str
    matching: int
    elements: int
    also: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether it reproduces every bit."""
        return self.matching == self.elements


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One operator. `hypotheses` that change some element, best first; `matching` is what the profile reproduces.

    Where `hypotheses` has no exact one, the cause is undetermined.
    """

    index: int
    profile: str
    matching: int
    elements: int
    hypotheses: tuple[Hypothesis, ...]
    places: tuple[str, ...] = ()  # where the differing elements of its first differing tensor sit

    @property
    def exact(self) -> tuple[Hypothesis, ...]:
        """All causes that reproduce every bit: where there are several, this input does not tell them apart."""
        return tuple(h for h in self.hypotheses if h.exact)

    @property
    def verdict(self) -> str:
        """same, explained (by one cause), ambiguous (several), partial or undetermined.

        partial: the best hypothesis leaves at most half of the elements unexplained that the profile does.
        """
        if self.matching == self.elements:
            return "same"
        if self.exact:
            return "explained" if len(self.exact) == 1 else "ambiguous"
        best = self.hypotheses[0].matching if self.hypotheses else 0
        return "partial" if 2 * (self.elements - best) <= self.elements - self.matching else "undetermined"


@dataclass(slots=True, eq=False)
class Group:
    """Devices whose results are the same bits on the inputs seen so far: kind, name and what computes each."""

    matching: int
    members: list[tuple[str, str, Device]] = field(default_factory=list)

    def hypothesis(self, elements: int) -> Hypothesis:
        """The first member's, under all names."""
        kind, name, _ = self.members[0]
        return Hypothesis(kind, name, self.matching, elements, tuple(other for _, other, _ in self.members[1:]))


def explain_operator(
    model: Model, dump: Dump, index: int, profile: Profile, others: Sequence[Dump] = ()
) -> Explanation:
    """Score every hypothesis on all elements of the operator's results that the dump holds.

    `others` are further samples: what reproduces the first has to reproduce them, too. Of what does not, only the best
    are computed on them.
    """
    alone, *rest = (operator_alone(model, one, index, profile) for one in (dump, *others))
    base = alone.run(alone.plan(profile))
    own = Group(_score(base, alone.got)[0], [("profile", profile.name, device_of(profile))])
    elements = sum(value.size for one in (alone, *rest) for value in one.got.values())
    (whole,) = _over([own], rest)
    found: list[Hypothesis] = []
    if whole.matching < elements:
        groups = sorted(grouped(alone, profile, base), key=lambda g: -g.matching)
        groups = sorted(_over(groups, rest), key=lambda g: -g.matching)
        parts = (separated(g, alone) if g.matching == elements else [g] for g in groups)
        found = [part.hypothesis(elements) for some in parts for part in some]
    return Explanation(index, profile.name, whole.matching, elements, tuple(found), _where(base, alone.got))


def _over(groups: Sequence[Group], others: Sequence[Alone]) -> list[Group]:
    """Groups of one sample, best first, over further ones, which may part them; of partial ones only the best."""
    if not others:
        return list(groups)
    fits = sum(group.matching == groups[0].matching for group in groups)
    found: list[Group] = []
    for group in groups[: max(fits, _SHOWN)]:
        parts: dict[tuple[bytes | None, ...], Group] = {}
        for kind, name, device in group.members:
            made = [results(device, other) for other in others]
            key = tuple(_digest(values, other) for values, other in zip(made, others, strict=True))
            if key not in parts:
                more = sum(_score(values, other.got)[0] for values, other in zip(made, others, strict=True))
                parts[key] = Group(group.matching + more)
            parts[key].members.append((kind, name, device))
        found += parts.values()
    return found


def grouped(alone: Alone, profile: Profile, base: Mapping[int, Array]) -> list[Group]:
    """All hypotheses that change some element, by their results; the most probable of equals comes first.

    Of a large image, mistakes that do not reproduce a thinner one are computed on the whole only if they are among the
    best there.
    """
    own, hopeless = _digest(base, alone), _hopeless(alone, profile, base)
    groups: dict[bytes, Group] = {}
    for kind, name, device in hypotheses(alone, profile):
        if kind == "mistake" and name in hopeless:
            continue
        values = results(device, alone)
        digest = _digest(values, alone)
        if digest is None or digest == own:
            continue
        if digest not in groups:
            groups[digest] = Group(_score(values, alone.got)[0])
        groups[digest].members.append((kind, name, device))
    return list(groups.values())


def _hopeless(alone: Alone, profile: Profile, base: Mapping[int, Array]) -> set[str]:
    """Mistakes that leave elements of a thinner image unexplained, but for the best. None of a small operator."""
    thinner = thinned(alone, profile, base)
    if thinner is None:
        return set()
    scores: dict[str, int] = {}
    for name, device in mistakes(thinner.alone, profile):
        score = _score(thinner.of(results(device, thinner.alone)), thinner.alone.got)[0]
        scores[name] = max(score, scores.get(name, 0))
    own, elements = _score(thinner.of(thinner.alone.run(thinner.alone.plan(profile))), thinner.alone.got)
    best = sorted((score for score in scores.values() if score > own), reverse=True)[:_SHOWN]
    return {name for name, score in scores.items() if score < elements and score not in best}


def separated(group: Group, alone: Alone) -> list[Group]:
    """A group in parts that inputs of the same values in another order tell apart."""
    parts: dict[tuple[bytes | None, ...], Group] = {}
    others = list(shuffled(alone)) if len(group.members) > 1 else []
    for kind, name, device in group.members:
        key = tuple(_digest(results(device, other), alone) for other in others)
        parts.setdefault(key, Group(group.matching)).members.append((kind, name, device))
    return list(parts.values())


def results(device: Device, alone: Alone) -> Results:
    """What a device makes of an operator's inputs, of the results that the dump holds; nothing where it cannot run."""
    try:
        with np.errstate(all="ignore"):
            made = device(alone)
    except TflqError:
        return {}
    return {t: made[t] for t in alone.got if t in made}


def fits(values: Results, alone: Alone) -> bool:
    """Whether all results that the dump holds are there, in their form."""
    return all(
        t in values and values[t].shape == seen.shape and values[t].dtype == seen.dtype for t, seen in alone.got.items()
    )


def _digest(values: Results, alone: Alone) -> bytes | None:
    """Of all results that the dump holds; None where one is missing or of another form."""
    if not fits(values, alone):
        return None
    digest = blake2b(digest_size=16)
    for tensor in alone.got:
        digest.update(values[tensor].tobytes())
    return digest.digest()


def _score(values: Results, got: Results) -> tuple[int, int]:
    """Elements that agree bit by bit, and all."""
    matching = 0
    for tensor, seen in got.items():
        value = values.get(tensor)
        if value is not None and value.shape == seen.shape and value.dtype == seen.dtype:
            matching += seen.size - int(np.count_nonzero(unequal(value, seen)))
    return matching, sum(seen.size for seen in got.values())


def _where(values: Mapping[int, Array], got: Results) -> tuple[str, ...]:
    for tensor, seen in got.items():
        if values[tensor].shape == seen.shape and (apart := unequal(values[tensor], seen)).any():
            return places(apart)
    return ()
