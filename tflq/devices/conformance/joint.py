"""Joint causes of failing cases: the fewest causes that reproduce all explained groups, and what is left.

`Judged.causes` names the causes of a case, of any kind: profiles, known mistakes, arithmetics of the learner's grammar.
This module only counts them. So a new kind of cause is one more name of the cases that it reproduces.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from tflq.devices.conformance.judging import Judged, Result
from tflq.diagnosis.joint import NONE, Joint, JointCause

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
    result: Result
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
    left: dict[tuple[str, str, Result], list[Judged]] = {}
    for one in cases:
        if one.fails and not (one.result == Result.DIFFERS and group_of(one) in known):
            left.setdefault((one.case.op, one.case.types, one.result), []).append(one)
    nearest = {
        (k.op, k.types, Result.DIFFERS): f"{name}: {k.failing:,} of {k.all_failing:,}"
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
        if one.result == Result.REFUSED:
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
        if one.result == Result.DIFFERS:
            groups.setdefault(group_of(one), []).append(one)
    return groups
