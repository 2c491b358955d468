"""Pairs of mistakes: the second is searched under the first.

First mistakes are those that others can be combined with. Those that correct most elements, or bring the results
nearest to the dump's, are taken, and every other mistake is tried under each. Readings of taps and averages cannot be
combined further, so the best of them are tried under every such mistake, and with every other reading. If the operator
has a large image, the search uses a thinner one, and mistakes that reproduce it are then computed on the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tflq.diagnosis.hypotheses import Hypothesis, Kind, device_of
from tflq.diagnosis.mistakes import Device, changes, mistakes, readings, readings_together, reorderings
from tflq.diagnosis.mistakes.device import Change, Mistaken
from tflq.diagnosis.outcomes import Results, digest, results, score
from tflq.diagnosis.subsampling import Thinner, thinned
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
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
        base, got = self.of(device_of(profile)), self.part.got
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
        yield from _under(alike, alone, [n for n, d in _mistakes(inside.part, profile) if inside.is_exact(d)])
    yield from _with_readings(alone, profile, view)


def under_profiles(
    alone: Part, others: Iterable[Profile], base: Mapping[int, Array], thinner: Thinner | None
) -> Iterator[Hypothesis]:
    """Yield mistakes under other profiles that are far from `base` here, which has a fault or lacks one."""
    view = _View.through(alone, thinner)
    for other in others:
        if _farthest(results(device_of(other), alone), base) <= _NEAR:
            continue
        names = {name for name, device in _mistakes(view.part, other) if view.is_exact(device)}
        for name, device in _mistakes(alone, other) if names else ():
            if name in names:
                yield Hypothesis(Kind.MISTAKES, f"{other.name}; and {name}", device)


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
    together = readings_together(view.part, profile, leading)
    exact = {name for name, device in together if view.is_exact(device)}
    for name, device in readings_together(alone, profile, leading) if exact else ():
        if name in exact:
            yield Hypothesis(Kind.MISTAKES, name, device)
    fitting: dict[str, set[str]] = {}
    for change in changes(view.part, profile) if leading else ():
        for name, device in _readings(change.of(view.part), change.first):
            if name in leading and view.is_exact(change.under(device)):
                fitting.setdefault(change.name, set()).add(name)
    for change in changes(alone, profile) if fitting else ():
        for name, device in _readings(change.of(alone), change.first) if change.name in fitting else ():
            if name in fitting[change.name]:
                yield Hypothesis(Kind.MISTAKES, f"{change.name}; and {name}", change.under(device))


def _under(alike: Iterable[Change], alone: Part, names: list[str]) -> Iterator[Hypothesis]:
    """Yield the named mistakes under first ones that the search did not distinguish."""
    for first in alike if names else ():
        for name, device in _seconds(first, alone):
            if name in names:
                yield Hypothesis(Kind.MISTAKES, f"{first.name}; and {name}", device)


def _seconds(first: Change, part: Part) -> Iterator[Mistaken]:
    """Yield every mistake under the first one."""
    for name, device in _mistakes(first.of(part), first.first):
        yield name, first.under(device)


def _mistakes(part: Part, profile: Profile) -> list[Mistaken]:
    """Return every mistake; none if the profile, which may already have a mistake, cannot be bound."""
    try:
        return list(mistakes(part, profile))
    except TflqError:
        return []


def _readings(part: Part, profile: Profile) -> list[Mistaken]:
    """Return every mistake in readings only."""
    try:
        return list(readings(part, profile))
    except TflqError:
        return []


def _distance(made: Results, got: Results) -> float:
    """Return the sum of absolute differences; infinite if there is nothing to compare."""
    total = 0.0
    for tensor, seen in got.items():
        value = made.get(tensor)
        if value is None or value.shape != seen.shape or value.dtype.kind not in "iuf":
            return float("inf")
        total += float(np.nansum(np.abs(value.astype(np.float64) - seen.astype(np.float64))))
    return total
