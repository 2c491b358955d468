"""Subjects of learning: an operator with its operand types, and the drafts that ask about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from tflq.devices.conformance.draft import Draft, levels_of
from tflq.devices.conformance.grids import (
    contracting,
    directed,
    elementwise,
    extremes,
    geometric,
    layout,
    moving,
    summing,
)
from tflq.devices.conformance.grids.kinds import KINDS

#: Families of drafts that a device may run.
_FAMILIES = (contracting, elementwise, summing, moving, directed)
#: Families of drafts that a form must reproduce, too, before it is claimed: geometries and options, extreme sums, tails
#: behind vectors up to wide rows, and ties in every channel.
_COVERING: tuple[Callable[[int, int, str], Iterable[Draft]], ...] = (
    geometric.drafts,
    extremes.drafts,
    partial(layout.drafts, tails=(*layout.TAILS, 6, 65)),
)
#: Draws of drafts that are kept; the seed of those that cover operators without geometries, and their number.
_KEPT, _COVERED, _ALL = 6, 60, 40


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """An operator and its operand types, such as "int8 int8 int32 -> int8"."""

    op: str
    types: str

    def __str__(self) -> str:
        return f"{self.op} {self.types}"

    @property
    def kind(self) -> str:
        """The type of the codes that it takes."""
        words = self.types.split()
        return next((word for word in words if word in KINDS), words[0])

    def drafts(self, seed: int, most: int) -> list[Draft]:
        """Return at most `most` drafts, spread over all aims; another seed draws other scales, codes and weights."""
        found = [draft for family in _families_of(self) for draft in _draws(seed, family).get(self, ())]
        return spread(found, most)

    def covering(self, seed: int, turn: int = 0) -> list[Draft]:
        """Return drafts of geometries, extreme sums and layouts, and of all aims where there are no geometries.

        Each has samples near every level of codes, too. Another turn has other geometries and other numbers.
        """
        found = list(_covering(seed, turn, self.op if turn else "").get(self, ()))
        if not any(draft.aim.startswith(geometric.AIM) for draft in found):
            found += self.drafts(seed + _COVERED + turn, _ALL)
        rng = np.random.default_rng([seed, turn, 31])
        return [replace(d, samples=(*d.samples, *levels_of(rng, d.inputs))) for d in found]


@lru_cache(_KEPT * len(_FAMILIES))
def _draws(seed: int, family: int) -> Mapping[Subject, tuple[Draft, ...]]:
    return _by_subject(_FAMILIES[family].drafts(seed))


@lru_cache(_KEPT)
def _covering(seed: int, turn: int, op: str) -> Mapping[Subject, tuple[Draft, ...]]:
    return _by_subject(draft for drafts in _COVERING for draft in drafts(seed + _COVERED * turn, turn, op))


def _by_subject(drafts: Iterable[Draft]) -> Mapping[Subject, tuple[Draft, ...]]:
    found: dict[Subject, list[Draft]] = {}
    for draft in drafts:
        found.setdefault(Subject(draft.op, draft.types), []).append(draft)
    return {subject: tuple(drafts) for subject, drafts in found.items()}


def _families_of(subject: Subject) -> list[int]:
    return [family for family in range(len(_FAMILIES)) if subject in _draws(0, family)]


def _known() -> list[Subject]:
    """Return every subject, in the order of the families."""
    return list(dict.fromkeys(subject for family in range(len(_FAMILIES)) for subject in _draws(0, family)))


def spread(drafts: Sequence[Draft], most: int) -> list[Draft]:
    """Return at most `most` drafts at equal distances, first those with different aims."""
    by_aim: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_aim.setdefault(draft.aim, []).append(draft)
    ordered = [draft for row in _turns(list(by_aim.values())) for draft in row]
    if len(by_aim) >= most > 0:
        firsts = ordered[: len(by_aim)]
        return [firsts[i * len(firsts) // most] for i in range(most)]
    return ordered[:most]


def _turns(lists: Sequence[Sequence[Draft]]) -> Iterator[list[Draft]]:
    """Yield the first of each list, then the middle ones, and so on."""
    for turn in range(max(map(len, lists), default=0)):
        yield [_mix(drafts)[turn] for drafts in lists if turn < len(drafts)]


def _mix(drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts in an order that jumps through them, so that a short beginning covers their geometries."""
    step = next((n for n in (7, 5, 11, 13, 1) if len(drafts) % n), 1)
    return [drafts[i * step % len(drafts)] for i in range(len(drafts))]


def subjects(kinds: Sequence[str], operators: Sequence[str] = ()) -> list[Subject]:
    """Return the subjects whose codes are of one of the types, all operators or those named."""
    others = {kind for kind in KINDS if kind not in kinds}
    found = []
    for subject in _known():
        words = set(subject.types.split())
        is_meant = words & set(kinds) and not words & others
        if is_meant and (not operators or subject.op in operators):
            found.append(subject)
    return found


def known_operators() -> tuple[str, ...]:
    """Return the operators that can be learned, in alphabetical order."""
    return tuple(sorted({subject.op for subject in _known()}))
