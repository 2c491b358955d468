"""Two runs of a target, or of two builds of it, compared: the operators, types and options whose bits changed.

Cases are matched by a digest of their model and inputs, so runs of suites of different versions can be compared. What a
case gave is known by a digest of the target's outputs, so it does not matter which profile the suite expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce

from tflq.devices.conformance.judging import Judged, Result, Verdicts
from tflq.devices.conformance.places import LOOKED_AT
from tflq.errors import InputError

#: Options that are named at most if none is common to all changed cases, and the beginning of aims of a geometry.
_SOME, _GEOMETRY = 3, "geometry: "


class Answer(str, Enum):
    """The way in which a target answers a case, apart from its bits."""

    RUNS = "runs"
    REFUSES = "refuses"
    FAILS = "fails"  # it ends, or leaves outputs of another size


class ChangeVerdict(str, Enum):
    """The verdict on two runs."""

    SAME = "same"
    DIFFERS = "differs"
    INCOMPLETE = "incomplete"  # nothing changed, but a run was interrupted
    NOTHING = "nothing compared"  # no case ran in both


@dataclass(frozen=True, slots=True)
class Computed:
    """The arithmetic that reproduces most changed cases of one side: `reproduced` of `cases` that it ran.

    `name` is empty if no arithmetic is known. `others` reproduce as many. `place` is then where `placed` of the cases
    differ from the profile: at least half of those that were looked at. `is_refuted`: one of the smallest cases is not
    known to be reproduced, so that the arithmetic is near, but not what was computed.
    """

    name: str
    others: tuple[str, ...]
    reproduced: int
    cases: int
    place: str = ""
    placed: int = 0
    is_refuted: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A case that gave other bits, or another answer, than before."""

    before: Judged
    after: Judged

    @property
    def answers(self) -> tuple[Answer, Answer]:
        """The target's answers before and after."""
        return answer_of(self.before), answer_of(self.after)

    @property
    def size(self) -> int:
        """Bytes of the model and its inputs."""
        return self.before.size or self.after.size


@dataclass(frozen=True, slots=True)
class Options:
    """Options that changed cases have, from their aims: all of them, or if `is_any` at least one.

    If `is_only`, no unchanged case has one of them; else some unchanged cases lack one.
    """

    names: tuple[str, ...] = ()
    is_only: bool = False
    is_any: bool = False


@dataclass(frozen=True, slots=True)
class KernelChange:
    """Changed cases of one operator and types, the smallest first, of `cases` that are in both runs.

    `options` distinguish them from the others; `before` and `after` are the arithmetics.
    """

    op: str
    types: str
    cases: int
    changes: tuple[Change, ...]
    options: Options
    before: Computed
    after: Computed

    @property
    def smallest(self) -> Change:
        """The smallest changed case."""
        return self.changes[0]

    @property
    def kinds(self) -> dict[str, int]:
        """The number of changed cases of each kind: `bits`, or such as `runs -> refuses`."""
        return dict(Counter(_name_kind(change) for change in self.changes))


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Two runs compared: changed kernels, those of most changed cases first.

    `same` cases ran in both with equal bits, `idle` ones did in neither; `only_before` and `only_after` are in one run.
    """

    before: Verdicts
    after: Verdicts
    kernels: tuple[KernelChange, ...]
    same: int
    idle: int
    only_before: int
    only_after: int

    @property
    def changed(self) -> int:
        """The number of changed cases."""
        return sum(len(kernel.changes) for kernel in self.kernels)

    @property
    def verdict(self) -> ChangeVerdict:
        """The verdict: a change counts, even if a run was interrupted."""
        if self.kernels:
            return ChangeVerdict.DIFFERS
        if self.before.left or self.after.left:
            return ChangeVerdict.INCOMPLETE
        return ChangeVerdict.SAME if self.same else ChangeVerdict.NOTHING


def answer_of(judged: Judged) -> Answer:
    """Return what the target did with a case."""
    if judged.result in (Result.ENDED, Result.MALFORMED):
        return Answer.FAILS
    refuses = judged.result == Result.REFUSED or (judged.result == Result.PASSES and judged.case.is_refused)
    return Answer.REFUSES if refuses else Answer.RUNS


def compare_runs(before: Verdicts, after: Verdicts) -> RunDiff:
    """Compare two runs.

    Raises:
        InputError: A run has no digests of its cases, as those that earlier versions recorded.
    """
    pairs, only_before, only_after = _match_cases(before, after)
    kernels: dict[tuple[str, str], list[Change]] = {}
    for change in pairs:
        kernels.setdefault((change.before.case.op, change.before.case.types), []).append(change)
    found = [
        _describe_kernel(op, types, both, before.profile, after.profile)
        for (op, types), both in kernels.items()
        if any(map(_is_changed, both))
    ]
    unchanged = [change for change in pairs if not _is_changed(change)]
    same = sum(change.answers[0] == Answer.RUNS for change in unchanged)
    found.sort(key=lambda kernel: (-len(kernel.changes), kernel.op, kernel.types))
    return RunDiff(before, after, tuple(found), same, len(unchanged) - same, only_before, only_after)


def _match_cases(before: Verdicts, after: Verdicts) -> tuple[list[Change], int, int]:
    """Return the cases that are in both runs, and the number of those that are in one only."""
    for name, run in (("before", before), ("after", after)):
        if any(not judged.digest for judged in run.cases):
            words = "has cases without digests: record it with this version"
            raise InputError(words, name=f"the run {name} ({run.target})")
    waiting: dict[str, list[Judged]] = {}
    for judged in before.cases:
        waiting.setdefault(judged.digest, []).append(judged)
    pairs = []
    for judged in after.cases:
        if waiting.get(judged.digest):
            pairs.append(Change(waiting[judged.digest].pop(0), judged))
    return pairs, len(before.cases) - len(pairs), len(after.cases) - len(pairs)


def _is_changed(change: Change) -> bool:
    first, second = change.answers
    return first != second or change.before.outputs != change.after.outputs


def _name_kind(change: Change) -> str:
    first, second = change.answers
    return "bits" if first == second else f"{first.value} -> {second.value}"


def _describe_kernel(op: str, types: str, both: Sequence[Change], before: str, after: str) -> KernelChange:
    changed = sorted(filter(_is_changed, both), key=lambda change: (change.size, change.before.case.id))
    rest = [change for change in both if not _is_changed(change)]
    options = _find_options([_read_options(c) for c in changed], [_read_options(c) for c in rest])
    sides = (_find_arithmetic([c.before for c in changed], before), _find_arithmetic([c.after for c in changed], after))
    return KernelChange(op, types, len(both), tuple(changed), options, *sides)


def _read_options(change: Change) -> frozenset[str]:
    """Return the options in a case's aim; those of a geometry one by one."""
    parts = change.before.case.aim.split("; ")
    single = (part.removeprefix(_GEOMETRY).split(", ") if part.startswith(_GEOMETRY) else [part] for part in parts)
    return frozenset(word for words in single for word in words if word)


def _find_options(changed: Sequence[frozenset[str]], rest: Sequence[frozenset[str]]) -> Options:
    """Return the options that distinguish changed cases from all others.

    Those that all changed cases have come first. Without any, a few are sought that no other case has and of which
    every changed case has one.
    """
    if not rest:
        return Options()
    elsewhere: frozenset[str] = frozenset().union(*rest)
    shared: frozenset[str] = reduce(frozenset.intersection, changed)
    always: frozenset[str] = reduce(frozenset.intersection, rest)
    if only := sorted(shared - elsewhere):
        return Options(tuple(only), is_only=True)
    if telling := sorted(shared - always):
        return Options(tuple(telling))
    chosen: list[str] = []
    waiting = [parts - elsewhere for parts in changed]
    while waiting and len(chosen) < _SOME:
        counts = Counter(part for parts in waiting for part in sorted(parts))
        if not counts:
            break
        chosen.append(counts.most_common(1)[0][0])
        waiting = [parts for parts in waiting if chosen[-1] not in parts]
    return Options() if waiting else Options(tuple(chosen), is_only=True, is_any=True)


def _find_arithmetic(cases: Iterable[Judged], profile: str) -> Computed:
    """Return the arithmetic that reproduces most of these cases, those that pass being the profile's."""
    ran = [judged for judged in cases if answer_of(judged) == Answer.RUNS]
    names = Counter(
        name for judged in ran for name in ((profile,) if judged.result == Result.PASSES else judged.causes)
    )
    sought = sum(judged.result == Result.DIFFERS for judged in ran[:LOOKED_AT])
    if not names or 2 * max(names.values()) < sought:
        places = Counter(judged.place for judged in ran if judged.place).most_common(1)
        return Computed("", (), 0, len(ran), *(places[0] if places and 2 * places[0][1] >= sought else ("", 0)))
    (first, most), *others = names.most_common()
    compared = [judged for judged in ran[:LOOKED_AT] if judged.result == Result.DIFFERS]
    is_refuted = first != profile and any(first not in judged.causes for judged in compared)
    names_alike = tuple(name for name, count in others if count == most)
    return Computed(first, names_alike, most, len(ran), is_refuted=is_refuted)
