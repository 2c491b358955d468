"""Two mistakes at once: the second is searched under the first.

Of the mistakes that others can be added to, those are taken that bring most elements right, or that bring the results
nearest to the dump's; under each of them every other mistake is tried. The search goes over a thinner image where the
operator has a large one; what reproduces that is then computed on the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses import Hypothesis, Kind
from tflq.diagnosis.mistakes import Device, mistakes
from tflq.diagnosis.mistakes.changes import changes
from tflq.diagnosis.mistakes.device import Change
from tflq.diagnosis.outcomes import Results, digest, results, score
from tflq.diagnosis.subsampling import Thinner
from tflq.errors import TflqError
from tflq.profiles import Profile
from tflq.surgery.part import Part

Array = NDArray[Any]

#: How many first mistakes are taken by the elements that they bring right, and by how near they come.
_FIRST = 4


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The operator as the search sees it."""

    part: Part
    thinner: Thinner | None

    def of(self, device: Device) -> Results:
        """What a device makes of what is compared."""
        computed = results(device, self.part)
        return computed if self.thinner is None else self.thinner.of(computed)


def pairs(alone: Part, profile: Profile, base: Mapping[int, Array], thinner: Thinner | None) -> Iterator[Hypothesis]:
    """Two mistakes that together reproduce every bit of the dump; `base` is what the profile makes of the operator."""
    view = _View(alone if thinner is None else thinner.alone, thinner)
    for first in _firsts(
        view, profile, base if thinner is None else view.of(lambda part: part.run(part.plan(profile)))
    ):
        names = [name for name, device in _seconds(first, view.part) if _is_exact(view.of(device), view.part)]
        for name, device in _seconds(first, alone) if names else ():
            if name in names:
                yield Hypothesis(Kind.MISTAKES, f"{first.name}; and {name}", device)


def _firsts(view: _View, profile: Profile, base: Results) -> list[Change]:
    own, near = score(base, view.part.got)[0], _distance(base, view.part.got)
    tried: set[bytes | None] = {digest(base, view.part), None}
    ranked: list[tuple[int, float, Change]] = []
    for change in changes(view.part, profile):
        computed = view.of(change.device)
        known = digest(computed, view.part)
        if known not in tried:
            tried.add(known)
            ranked.append((score(computed, view.part.got)[0], _distance(computed, view.part.got), change))
    by_elements = [r for r in sorted(ranked, key=lambda r: -r[0]) if r[0] > own][:_FIRST]
    by_distance = [r for r in sorted(ranked, key=lambda r: r[1]) if r[1] < near][:_FIRST]
    return list(dict.fromkeys(change for _, _, change in (*by_elements, *by_distance)))


def _seconds(first: Change, part: Part) -> Iterator[tuple[str, Device]]:
    """Every mistake under the first one."""
    try:
        under = list(mistakes(first.of(part), first.profile))
    except TflqError:
        return
    for name, device in under:
        yield name, _under(first, device)


def _under(first: Change, second: Device) -> Device:
    return lambda part: second(first.of(part))


def _is_exact(computed: Results, part: Part) -> bool:
    matching, elements = score(computed, part.got)
    return matching == elements


def _distance(computed: Results, got: Results) -> float:
    """The sum of absolute differences; infinite where there is nothing to compare."""
    total = 0.0
    for tensor, dumped in got.items():
        value = computed.get(tensor)
        if value is None or value.shape != dumped.shape or value.dtype.kind not in "iuf":
            return float("inf")
        total += float(np.nansum(np.abs(value.astype(np.float64) - dumped.astype(np.float64))))
    return total
