"""Causes of failing cases, in groups and together.

Joint causes of failing cases: the fewest causes that reproduce all explained groups, and what is left.

`Judged.causes` names the causes of a case, of any kind: profiles, known mistakes, arithmetics of the learner's grammar.
This module only counts them. So a new kind of cause is one more name of the cases that it reproduces.

Explain failing cases in groups, with one cause for as many groups as possible.

A group is the differing cases with the same operator, types and distinguished profiles. One case of a group is
explained. The causes that reproduce it are then compared with further cases of the group, and of all groups' causes
those that reproduce most groups are kept. They are also compared with a case of each group that was not explained. A
fault in an explanation is noted, and no verdict is lost.

Where the results of failing cases differ for which no arithmetic is known: codes, windows, axes, memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.comparison.evidence.dumps import dump_of
from tflq.devices.suites.jobs import CaseFolder
from tflq.devices.suites.judge import CaseResult, Judged
from tflq.devices.suites.make import arrays, model_of
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import defect_after, defect_before, wrong_result
from tflq.diagnosis.findings import investigate
from tflq.diagnosis.hypotheses import Hypothesis
from tflq.diagnosis.siblings import NONE, Joint, JointCause
from tflq.engine.api.files import load
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.interrupts import Progress, silent
from tflq.model.ir import view
from tflq.model.storage.arrays import Archive

#: A number of a version or a size, not a part of a word such as int8; an address; the number of a tensor or a node.
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.-])\d+(?![\w.-])|(?<=\bin)\d+\b|(?<=\bout)\d+\b|(?<=__)\d+(?::\d+)?")


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A group of failing cases without a cause: `result` and `failing` cases of one operator and types.

    `nearest` is the arithmetic that reproduces most of them, with how many; empty: none reproduces any. `reason` is the
    first case's difference, or where it is if that is known.
    """

    op: str
    types: str
    result: CaseResult
    failing: int
    first: str
    reason: str
    nearest: str = ""


def group_of(judged: Judged) -> Hashable:
    """Return the key that cases of one group share."""
    return judged.case.op, judged.case.types, judged.case.tells


def with_arithmetics(cases: Sequence[Judged], joint: Joint) -> tuple[Judged, ...]:
    """Name the arithmetics of the grammar as causes of the cases that they reproduce, before their other causes."""
    names: dict[str, tuple[str, ...]] = {}
    for cause in joint.causes:
        names |= {name: (*names.get(name, ()), cause.name) for name in cause.names}
    return tuple(
        replace(one, causes=tuple(dict.fromkeys((*names[one.case.id], *one.causes)))) if one.case.id in names else one
        for one in cases
    )


def joint_causes(cases: Sequence[Judged], joint: Joint = NONE) -> tuple[JointCause, ...]:
    """Return the causes of differing cases: first the one that reproduces most, then that with most of the others.

    A group counts for one cause only. Ties are broken by the number of groups, then by the order in the first case.
    `joint` has the evidence of causes that were compared with every case.
    """
    groups = _groups(cases)
    known = {cause.name: cause for cause in joint.causes}
    whole = {(k.op, k.types, cause.name) for cause in joint.causes for k in cause.kernels if k.is_whole}
    reproduced = {key: _claiming(group, whole) for key, group in groups.items()}
    waiting = [key for key, names in reproduced.items() if names]
    found = []
    while waiting:
        reach: Counter[str] = Counter(name for key in waiting for name in reproduced[key])
        weight: Counter[str] = sum((reproduced[key] for key in waiting), Counter())
        name = max(reach, key=lambda name: (weight[name], reach[name]))
        own = [key for key in waiting if name in reproduced[key]]
        others = [o for o in reach if o != name and all(o in reproduced[key] for key in own)]
        members = [one for key in own for one in groups[key]]
        kernels = known[name].kernels if name in known else ()
        if not {(one.case.op, one.case.types) for one in members} <= {(k.op, k.types) for k in kernels}:
            kernels = ()
        others += known[name].others if kernels else ()
        names = tuple(one.case.id for one in members if name in one.causes)
        operators = tuple(dict.fromkeys(one.case.op for one in members))
        found.append(JointCause(name, tuple(dict.fromkeys(others)), len(own), len(members), operators, names, kernels))
        waiting = [key for key in waiting if key not in own]
    return tuple(found)


def _claiming(group: Sequence[Judged], whole: Collection[tuple[str, str, str]]) -> Counter[str]:
    """Return the causes of a group with the number of its cases that each reproduces.

    Causes in `whole` reproduce every case of their operator and types: if there is one, others were compared with too
    few cases to count. A cause that reproduces less than half of what another one does came near by chance.
    """
    counts = Counter(name for one in group for name in one.causes)
    kernel = group[0].case
    fitting = [name for name in counts if (kernel.op, kernel.types, name) in whole] or list(counts)
    most = max((counts[name] for name in fitting), default=0)
    return Counter({name: counts[name] for name in fitting if 2 * counts[name] >= most})


def unexplained(cases: Sequence[Judged], joint: Joint = NONE) -> tuple[Unexplained, ...]:
    """Return the failing cases without a cause by operator, types and result, the most numerous first."""
    known = {key for key, group in _groups(cases).items() if any(one.causes for one in group)}
    left: dict[tuple[str, str, CaseResult], list[Judged]] = {}
    for one in cases:
        if one.fails and not (one.result == CaseResult.DIFFERS and group_of(one) in known):
            left.setdefault((one.case.op, one.case.types, one.result), []).append(one)
    nearest = {
        (k.op, k.types, CaseResult.DIFFERS): f"{name}: {k.failing:,} of {k.all_failing:,}"
        for name, k in joint.nearest
        if k.failing
    }
    rows = [
        Unexplained(*key, len(group), group[0].case.id, group[0].place or group[0].reason, nearest.get(key, ""))
        for key, group in left.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.failing))


@dataclass(frozen=True, slots=True)
class Refusals:
    """Cases that the target refused for one reason: the first case's, in the target's words up to a semicolon.

    The others' reasons may have their own operators, types and numbers in it.
    """

    reason: str
    cases: tuple[Judged, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the cases with their types, in alphabetical order."""
        return tuple(sorted({f"{one.case.op} {one.case.types}" for one in self.cases}))


def refusals(cases: Sequence[Judged]) -> tuple[Refusals, ...]:
    """Return the refused cases by the target's reason, largest group first.

    Reasons are equal if they differ only in the case's operator and types, in numbers, or after a semicolon.
    """
    groups: dict[Hashable, list[Judged]] = {}
    for one in cases:
        if one.result == CaseResult.REFUSED:
            groups.setdefault(_kind_of_refusal(one), []).append(one)
    ordered = sorted(groups.values(), key=lambda group: -len(group))
    return tuple(Refusals(_reason(group[0]) or "no reason given", tuple(group)) for group in ordered)


def _kind_of_refusal(one: Judged) -> str:
    """Return the key of a reason: the same for every operator, types and numbers, which control characters replace."""
    text = _reason(one).replace(one.case.types, "\1") if one.case.types else _reason(one)
    return _NUMBER.sub("\3", re.sub(rf"\b{re.escape(one.case.op)}\b", "\2", text))


def _reason(one: Judged) -> str:
    return one.reason.split("; ")[0]


def _groups(cases: Sequence[Judged]) -> dict[Hashable, list[Judged]]:
    groups: dict[Hashable, list[Judged]] = {}
    for one in cases:
        if one.result == CaseResult.DIFFERS:
            groups.setdefault(group_of(one), []).append(one)
    return groups


#: Limits on explained groups, on further cases of each, and on causes that are kept of a case.
EXPLAINED, _FURTHER, _KEPT = 12, 3, 8
#: Cases of an explained group that are compared with the causes that are kept of it.
_COMPARED = 60
#: Limits on groups that are compared with the causes of explained groups, and on these causes.
_ELSEWHERE, _CARRIED = 200, 8


def explained_groups(judged: Sequence[Judged]) -> tuple[int, int]:
    """Return the number of explained groups, and the number of all groups."""
    differing = [one for one in judged if one.result == CaseResult.DIFFERS]
    return len({group_of(one) for one in differing if one.is_explained}), len({group_of(one) for one in differing})


def explain(
    job: CaseFolder,
    archive: Archive,
    judged: Sequence[Judged],
    profile: str,
    most: int = EXPLAINED,
    tell: Progress = silent,
) -> tuple[Judged, ...]:
    """Add causes to cases of the first groups, at most `most` of them; `tell` hears of the progress."""
    groups: dict[Hashable, list[int]] = {}
    for position, one in enumerate(judged):
        if one.result == CaseResult.DIFFERS:
            groups.setdefault(group_of(one), []).append(position)
    results = list(judged)
    found: dict[int, _Found] = {}
    chosen = list(groups.values())[: max(0, most)]
    for number, (first, *others) in enumerate(chosen):
        tell("searching causes", number, len(chosen))
        results[first] = replace(results[first], is_explained=True)
        try:
            found[first] = _found(job, archive, [judged[i] for i in (first, *others[:_FURTHER])], by_name(profile))
        except Exception as error:  # the verdict is known: a fault in its explanation must not take it away
            results[first] = replace(results[first], fault=f"{type(error).__name__}: {error}")
    reach = Counter(name for one in found.values() for name in one.names)
    for first, *others in chosen:
        if first in found:
            causes = found[first].chosen(reach)
            for number, position in enumerate((first, *others[:_FURTHER])):
                kept = tuple(name for name in causes if number in found[first].names[name])
                results[position] = replace(results[position], causes=kept)
            members = [member for member in found[first].members if member.name in causes]
            for position in others[_FURTHER:_COMPARED] if members else ():
                names = _reproducing(job, archive, judged[position], members, by_name(profile))
                results[position] = replace(results[position], causes=names)
    carried = _carry(found.values(), reach)
    for first, *_ in list(groups.values())[len(chosen) : len(chosen) + _ELSEWHERE] if carried else ():
        names = _reproducing(job, archive, judged[first], carried, by_name(profile))
        results[first] = replace(results[first], causes=names)
    return tuple(results)


@dataclass(frozen=True, slots=True)
class _Found:
    """Causes of a group's first case, the likeliest first: the numbers of the cases that each reproduces.

    `leading` are the fitting profiles that the case was made to distinguish, else the first names of its causes.
    `members` are the causes that other cases can be compared with.
    """

    names: Mapping[str, tuple[int, ...]]
    leading: tuple[str, ...]
    members: tuple[Hypothesis, ...] = ()

    def chosen(self, reach: Mapping[str, int]) -> tuple[str, ...]:
        """Return the causes that reproduce most cases of the group, and of these the ones with most groups."""
        most = max((len(cases) for cases in self.names.values()), default=0)
        fitting = [name for name, cases in self.names.items() if len(cases) == most]
        farthest = max((reach[name] for name in fitting), default=0)
        if farthest < 2 and any(name in self.leading for name in fitting):
            fitting = [name for name in fitting if name in self.leading]
        return tuple(name for name in fitting if reach[name] == farthest)[:_KEPT]


def _found(job: CaseFolder, archive: Archive, cases: Sequence[Judged], profile: Profile) -> _Found:
    first, *others = (observed_case(job, archive, one, profile) for one in cases)
    explanation = investigate(first.model, first.dumps, profile).explanation
    if explanation is None:
        return _Found({}, ())
    members = [member for cause in explanation.fitting for member in cause.members]
    compared = list(others) if members else []
    fitting = {h.name: (0, *(k for k, other in enumerate(compared, 1) if _fits(h, other))) for h in members}
    told = [name for name in cases[0].case.tells if name in fitting]
    leading = told or [cause.name for cause in explanation.exact or explanation.ranking.possible]
    return _Found({**dict.fromkeys(leading, (0,)), **fitting}, tuple(leading), tuple(members))


def _carry(found: Iterable[_Found], reach: Mapping[str, int]) -> list[Hypothesis]:
    """Return the causes that other groups are compared with: those of most groups first."""
    members = {member.name: member for one in found for member in one.members if member.name in one.chosen(reach)}
    return sorted(members.values(), key=lambda member: -reach[member.name])[:_CARRIED]


def _reproducing(
    job: CaseFolder, archive: Archive, judged: Judged, hypotheses: Sequence[Hypothesis], profile: Profile
) -> tuple[str, ...]:
    """Return the names of the hypotheses that reproduce a case; none if it cannot be compared."""
    try:
        case = observed_case(job, archive, judged, profile)
        return tuple(hypothesis.name for hypothesis in hypotheses if _fits(hypothesis, case))
    except Exception:  # the verdict is known, and causes of other groups are a bonus
        return ()


def observed_case(job: CaseFolder, archive: Archive, judged: Judged, profile: Profile) -> OperatorCase:
    """Return the first operator of a case with the outputs that the target left: one dump per sample."""
    case = judged.case
    model = load(model_of(archive, case))
    graph = view(model)
    expected = [arrays(archive, sample) for sample in case.expected]
    dumps = []
    for sample, made in zip(case.samples, job.outputs(case, expected), strict=True):
        values = dict(zip(graph.inputs, arrays(archive, sample), strict=True))
        values |= {t: v for t, v in zip(graph.outputs, made, strict=True) if not isinstance(v, str)}
        dumps.append(dump_of(model, values))
    return OperatorCase(model, tuple(dumps), 0, profile)


def is_comparable(case: OperatorCase) -> bool:
    """Return whether the model has one operator, which the profile computes in all samples."""
    return len(view(case.model).ops) == 1 and case.is_computable


def _fits(hypothesis: Hypothesis, case: OperatorCase) -> bool:
    return is_comparable(case) and case.fits(hypothesis)


#: Cases of an operator and types that are looked at.
LOOKED_AT = 24


def add_places(job: CaseFolder, archive: Archive, cases: Sequence[Judged], profile: str) -> tuple[Judged, ...]:
    """Add the place of the differences to cases without a cause, at most 24 of an operator and types.

    No verdict depends on it: a fault while it is sought leaves it open.
    """
    known = by_name(profile)
    counts: dict[tuple[str, str], int] = {}
    found = []
    for one in cases:
        kernel = one.case.op, one.case.types
        if one.result == CaseResult.DIFFERS and not one.causes and counts.get(kernel, 0) < LOOKED_AT:
            counts[kernel] = counts.get(kernel, 0) + 1
            one = replace(one, place=_place(job, archive, one, known))
        found.append(one)
    return tuple(found)


def _place(job: CaseFolder, archive: Archive, one: Judged, profile: Profile) -> str:
    try:
        case = wrong_result(observed_case(job, archive, one, profile))
        defect = None if case is None else defect_before(case, is_chosen=True) or defect_after(case)
    except (TflqError, ArithmeticError, LookupError, ValueError):
        return ""
    return "" if defect is None or defect.certainty == Certainty.NONE else defect.name
