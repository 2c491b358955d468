"""Two runs of a target compared, and requirements that runs cover.

Two runs of a target, or of two builds of it, compared: the operators, types and options whose bits changed.

Cases are matched by a digest of their model and inputs, so runs of suites of different versions can be compared. What a
case gave is known by a digest of the target's outputs, so it does not matter which profile the suite expected.

Requirements of conformance with stable identifiers, the cases that cover them, and the levels that a run meets.

An identifier is OPERATOR/TYPE/ASPECT: `computes`; `OPTION=VALUE`, for the values that the grids of geometries have;
`rounding`, which only cases cover on which profiles of other rounding rules differ. Requirements come from the kernel
tables, the facts of operators and the grids. A level is a frozen list of identifiers, which `tools/make_levels.py`
writes to `schemas/conformance_levels.json`; another list is another version.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cache, reduce
from typing import Any

from tflq.devices.grids import BASIC
from tflq.devices.grids.geometric import choice_of, spaces
from tflq.devices.suites.causes import LOOKED_AT
from tflq.devices.suites.draft import PROFILE, RELEASE, kind_of, kinds
from tflq.devices.suites.judge import CaseResult, Judged, Response, Verdicts
from tflq.devices.suites.make import Case
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.profiles import by_name
from tflq.errors import InputError
from tflq.model.ir.model import data_text
from tflq.model.storage.documents import read_document
from tflq.texts import Tabular, display_by

#: Separators between the changes in the name of an arithmetic.
_CHANGES = re.compile(r"[,;+]| and ")
#: Options that are named at most if none is common to all changed cases, and the beginning of aims of a geometry.
_SOME, _GEOMETRY = 3, "geometry: "


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
class RunChange:
    """A case that gave other bits, or another answer, than before."""

    before: Judged
    after: Judged

    @property
    def answers(self) -> tuple[Response, Response]:
        """The target's answers before and after."""
        return self.before.answer, self.after.answer

    @property
    def size(self) -> int:
        """Bytes of the model and its inputs."""
        return self.before.size or self.after.size


@dataclass(frozen=True, slots=True)
class DiffOptions:
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
    changes: tuple[RunChange, ...]
    options: DiffOptions
    before: Computed
    after: Computed

    @property
    def smallest(self) -> RunChange:
        """The smallest changed case."""
        return self.changes[0]

    @property
    def kinds(self) -> dict[str, int]:
        """The number of changed cases of each kind: `bits`, or such as `runs -> refuses`."""
        return dict(Counter(_name_kind(change) for change in self.changes))


@display_by("conform_changes:changes_report", "changes_document", "operators")
@dataclass(frozen=True, slots=True)
class RunDiff(Tabular):
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


def compare_runs(before: Verdicts, after: Verdicts) -> RunDiff:
    """Compare two runs.

    Raises:
        InputError: A run has no digests of its cases, as those that earlier versions recorded.
    """
    pairs, only_before, only_after = _match_cases(before, after)
    kernels: dict[tuple[str, str], list[RunChange]] = {}
    for change in pairs:
        kernels.setdefault((change.before.case.op, change.before.case.types), []).append(change)
    found = [
        _describe_kernel(op, types, both, before.profile, after.profile)
        for (op, types), both in kernels.items()
        if any(map(_is_changed, both))
    ]
    unchanged = [change for change in pairs if not _is_changed(change)]
    same = sum(change.answers[0] == Response.RUNS for change in unchanged)
    found.sort(key=lambda kernel: (-len(kernel.changes), kernel.op, kernel.types))
    return RunDiff(before, after, tuple(found), same, len(unchanged) - same, only_before, only_after)


def _match_cases(before: Verdicts, after: Verdicts) -> tuple[list[RunChange], int, int]:
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
            pairs.append(RunChange(waiting[judged.digest].pop(0), judged))
    return pairs, len(before.cases) - len(pairs), len(after.cases) - len(pairs)


def _is_changed(change: RunChange) -> bool:
    first, second = change.answers
    return first != second or change.before.outputs != change.after.outputs


def _name_kind(change: RunChange) -> str:
    first, second = change.answers
    return "bits" if first == second else f"{first.value} -> {second.value}"


def _describe_kernel(op: str, types: str, both: Sequence[RunChange], before: str, after: str) -> KernelChange:
    changed = sorted(filter(_is_changed, both), key=lambda change: (change.size, change.before.case.id))
    rest = [change for change in both if not _is_changed(change)]
    options = _find_options([_read_options(c) for c in changed], [_read_options(c) for c in rest])
    sides = (_find_arithmetic([c.before for c in changed], before), _find_arithmetic([c.after for c in changed], after))
    return KernelChange(op, types, len(both), tuple(changed), options, *sides)


def _read_options(change: RunChange) -> frozenset[str]:
    """Return the options in a case's aim; those of a geometry one by one."""
    parts = change.before.case.aim.split("; ")
    single = (part.removeprefix(_GEOMETRY).split(", ") if part.startswith(_GEOMETRY) else [part] for part in parts)
    return frozenset(word for words in single for word in words if word)


def _find_options(changed: Sequence[frozenset[str]], rest: Sequence[frozenset[str]]) -> DiffOptions:
    """Return the options that distinguish changed cases from all others.

    Those that all changed cases have come first. Without any, a few are sought that no other case has and of which
    every changed case has one.
    """
    if not rest:
        return DiffOptions()
    elsewhere: frozenset[str] = frozenset().union(*rest)
    shared: frozenset[str] = reduce(frozenset.intersection, changed)
    always: frozenset[str] = reduce(frozenset.intersection, rest)
    if only := sorted(shared - elsewhere):
        return DiffOptions(tuple(only), is_only=True)
    if telling := sorted(shared - always):
        return DiffOptions(tuple(telling))
    chosen: list[str] = []
    waiting = [parts - elsewhere for parts in changed]
    while waiting and len(chosen) < _SOME:
        counts = Counter(part for parts in waiting for part in sorted(parts))
        if not counts:
            break
        chosen.append(counts.most_common(1)[0][0])
        waiting = [parts for parts in waiting if chosen[-1] not in parts]
    return DiffOptions() if waiting else DiffOptions(tuple(chosen), is_only=True, is_any=True)


def _find_arithmetic(cases: Iterable[Judged], profile: str) -> Computed:
    """Return the arithmetic that reproduces most of these cases, those that pass being the profile's.

    One that reproduces every case that was looked at goes first, then the one of fewest changes.
    """
    ran = [judged for judged in cases if judged.answer == Response.RUNS]
    names = Counter(
        name for judged in ran for name in ((profile,) if judged.result == CaseResult.PASSES else judged.causes)
    )
    sought = sum(judged.result == CaseResult.DIFFERS for judged in ran[:LOOKED_AT])
    if not names or 2 * max(names.values()) < sought:
        places = Counter(judged.place for judged in ran if judged.place).most_common(1)
        return Computed("", (), 0, len(ran), *(places[0] if places and 2 * places[0][1] >= sought else ("", 0)))
    compared = [judged for judged in ran[:LOOKED_AT] if judged.result == CaseResult.DIFFERS]
    ranks = {n: (n != profile and any(n not in judged.causes for judged in compared), -names[n]) for n in names}
    first, *others = sorted(names, key=lambda name: (ranks[name], len(_CHANGES.findall(name))))
    alike = tuple(name for name in others if ranks[name] == ranks[first])
    return Computed(first, alike, names[first], len(ran), is_refuted=ranks[first][0])


LEVELS = ("smoke", "standard", "full")
COMPUTES, ROUNDING = "computes", "rounding"
#: Extents of images, which are no options of the operator.
_EXTENTS = ("height", "width", "rows")
_ACTIVATIONS = ("RELU", "RELU_N1_TO_1", "RELU6")


def requirements() -> Iterator[tuple[str, str]]:
    """Yield every identifier with the lowest level that asks for it.

    Operators that the reference resolver does not register have none: no run of the reference could meet them.
    """
    for op in sorted(by_name(PROFILE).kernels):
        fact = OPERATORS.get(op)
        if fact is None or fact.quantize is None or not fact.highest(RELEASE, optimized=False):
            continue
        for kind in kinds(op):
            space = spaces(kind).get(op)
            yield f"{op}/{kind}/{COMPUTES}", _level_of(op, kind)
            for name, values in {} if space is None else space.options.items():
                yield from ((f"{op}/{kind}/{name}={value}", "smoke") for value in values if name not in _EXTENTS)
            if fact.products is not None and kind != "int16":  # int16 rounds once in every runtime
                yield f"{op}/{kind}/{ROUNDING}", "standard" if op in spaces(kind) else "full"


def _level_of(op: str, kind: str) -> str:
    return "smoke" if (op, kind) in _basic() else "full"


@cache
def _basic() -> frozenset[tuple[str, str | None]]:
    """Return the operators and types that the basic grids ask about."""
    return frozenset((draft.op, kind_of(draft.types)) for family in BASIC for draft in family(0))


def cover_by(case: Case) -> Iterator[str]:
    """Yield the identifiers that a case covers; none if a target must refuse it."""
    kind = kind_of(case.types)
    if kind is None or case.is_refused:
        return
    start = f"{case.op}/{kind}/"
    yield start + COMPUTES
    for name, value in (choice_of(case.aim) or {}).items():
        if name not in _EXTENTS:
            yield f"{start}{name}={value}"
    ending = case.aim.rpartition("; ")[2]
    if ending in _ACTIVATIONS:
        yield f"{start}activation={ending}"
    if case.tells:  # profiles differ in products by their rounding
        yield start + ROUNDING


@dataclass(frozen=True, slots=True)
class ExcludedCase:
    """Requirements that a claim leaves out: a pattern of identifiers, why, and since when."""

    requirement: str
    reason: str
    date: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A level and its requirements by result. `failed` have a case that does not pass, `without_case` have none."""

    level: str
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    without_case: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def is_met(self) -> bool:
        """True if every requirement passes that is not excluded."""
        return bool(self.passed) and not self.failed and not self.without_case


@display_by("conform_changes:requirements_report", "requirements_document", "levels")
@dataclass(frozen=True, slots=True)
class Claim(Tabular):
    """The claim of a run: its target, the version of the levels, each level, and exclusions that match nothing."""

    target: str
    version: int
    levels: tuple[Standing, ...]
    exclusions: tuple[ExcludedCase, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def met(self) -> str:
        """The highest level that is met with all levels below it; empty if none is."""
        met = ""
        for standing in self.levels:
            if not standing.is_met:
                break
            met = standing.level
        return met


def claim_of(verdicts: Verdicts, exclusions: Sequence[ExcludedCase] = ()) -> Claim:
    """Return the levels that a run meets. A requirement passes if every case that covers it does."""
    frozen = levels()
    passed: dict[str, bool] = {}
    for one in verdicts.cases:
        for requirement in cover_by(one.case):
            passed[requirement] = passed.get(requirement, True) and _passes(one)
    everything = [requirement for level in LEVELS for requirement in frozen["levels"][level]]
    matched = {e.requirement: set(fnmatch.filter(everything, e.requirement)) for e in exclusions}
    left_out = set().union(*matched.values())
    standings, wanted = [], []
    for level in LEVELS:
        wanted += frozen["levels"][level]
        asked = [requirement for requirement in wanted if requirement not in left_out]
        standings.append(
            Standing(
                level,
                tuple(r for r in asked if passed.get(r) is True),
                tuple(r for r in asked if passed.get(r) is False),
                tuple(r for r in asked if r not in passed),
                tuple(r for r in wanted if r in left_out),
            )
        )
    unused = tuple(pattern for pattern, found in matched.items() if not found)
    return Claim(verdicts.target, int(frozen["version"]), tuple(standings), tuple(exclusions), unused)


def _passes(one: Judged) -> bool:
    return one.result is CaseResult.PASSES


@cache
def levels() -> Mapping[str, Any]:
    """Return the frozen levels: the version, and the identifiers that each level adds to those below it."""
    document: Mapping[str, Any] = json.loads(data_text("conformance_levels.json"))
    return document


def read_exclusions(path: str) -> tuple[ExcludedCase, ...]:
    """Return the exclusions of a YAML or JSON file: a list of `requirement`, `reason` and `date` (YYYY-MM-DD).

    Raises:
        FileAccessError: The file cannot be read.
        InputError: An entry is incomplete, or its date is none.
    """
    document = read_document(path)
    if not isinstance(document, list):
        raise InputError("exclusions", name=path, expected="a list of requirement, reason and date")
    return tuple(_exclusion(path, number, item) for number, item in enumerate(document))


def _exclusion(path: str, number: int, item: Any) -> ExcludedCase:
    keys = ("requirement", "reason", "date")
    if not isinstance(item, dict) or set(item) != set(keys) or not all(str(item[key]).strip() for key in keys):
        raise InputError(f"exclusion {number}", name=path, expected="requirement, reason and date", got=f"{item!r:.80}")
    try:
        when = date.fromisoformat(str(item["date"]))
    except ValueError:
        raise InputError(
            f"date of exclusion {number}", name=path, expected="YYYY-MM-DD", got=f"{item['date']!r:.40}"
        ) from None
    return ExcludedCase(str(item["requirement"]), str(item["reason"]), when.isoformat())
