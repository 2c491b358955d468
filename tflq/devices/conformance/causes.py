"""Explain failing cases in groups, with one cause for as many groups as possible.

A group is the differing cases with the same operator, types and distinguished profiles. One case of a group is
explained. The causes that reproduce it are then compared with further cases of the group, and of all groups' causes
those that reproduce most groups are kept. They are also compared with a case of each group that was not explained. A
fault in an explanation is noted, and no verdict is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.evidence.dumps import dump_of
from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.joint import group_of
from tflq.devices.conformance.judging import Judged, Result
from tflq.devices.conformance.suite import arrays, model_of
from tflq.diagnosis.findings import investigate
from tflq.diagnosis.hypotheses import Hypothesis
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.siblings import Known
from tflq.engine.api.files import load
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.model.storage.archive import Archive
from tflq.progress import Progress, silent

#: Limits on explained groups, on further cases of each, and on causes that are kept of a case.
EXPLAINED, _FURTHER, _KEPT = 12, 3, 8
#: Cases of an explained group that are compared with the causes that are kept of it.
_COMPARED = 60
#: Limits on groups that are compared with the causes of explained groups, and on these causes.
_ELSEWHERE, _CARRIED = 200, 8


def explained_groups(judged: Sequence[Judged]) -> tuple[int, int]:
    """Return the number of explained groups, and the number of all groups."""
    differing = [one for one in judged if one.result == Result.DIFFERS]
    return len({group_of(one) for one in differing if one.is_explained}), len({group_of(one) for one in differing})


def explain(
    job: Job, archive: Archive, judged: Sequence[Judged], profile: str, most: int = EXPLAINED, tell: Progress = silent
) -> tuple[Judged, ...]:
    """Add causes to cases of the first groups, at most `most` of them; `tell` hears of the progress."""
    groups: dict[Hashable, list[int]] = {}
    for position, one in enumerate(judged):
        if one.result == Result.DIFFERS:
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


def _found(job: Job, archive: Archive, cases: Sequence[Judged], profile: Profile) -> _Found:
    first, *others = (observed_case(job, archive, one) for one in cases)
    explanation = investigate(first.model, first.dumps, profile).explanation
    if explanation is None:
        return _Found({}, ())
    members = [member for cause in explanation.fitting for member in cause.members]
    parts = [list(known_samples(other, profile)) for other in others] if members else []
    fitting = {h.name: (0, *(k for k, known in enumerate(parts, 1) if _fits(h, known))) for h in members}
    told = [name for name in cases[0].case.tells if name in fitting]
    leading = told or [cause.name for cause in explanation.exact or explanation.possible]
    return _Found({**dict.fromkeys(leading, (0,)), **fitting}, tuple(leading), tuple(members))


def _carry(found: Iterable[_Found], reach: Mapping[str, int]) -> list[Hypothesis]:
    """Return the causes that other groups are compared with: those of most groups first."""
    members = {member.name: member for one in found for member in one.members if member.name in one.chosen(reach)}
    return sorted(members.values(), key=lambda member: -reach[member.name])[:_CARRIED]


def _reproducing(
    job: Job, archive: Archive, judged: Judged, hypotheses: Sequence[Hypothesis], profile: Profile
) -> tuple[str, ...]:
    """Return the names of the hypotheses that reproduce a case; none if it cannot be compared."""
    try:
        known = list(known_samples(observed_case(job, archive, judged), profile))
        return tuple(hypothesis.name for hypothesis in hypotheses if _fits(hypothesis, known))
    except Exception:  # the verdict is known, and causes of other groups are a bonus
        return ()


@dataclass(frozen=True, slots=True)
class ObservedCase:
    """A case's model, and the target's inputs and outputs: one dump per sample."""

    model: Model
    dumps: tuple[Dump, ...]


def observed_case(job: Job, archive: Archive, judged: Judged) -> ObservedCase:
    """Return a case with the outputs that the target left."""
    case = judged.case
    model = load(model_of(archive, case))
    graph = view(model)
    expected = [arrays(archive, sample) for sample in case.expected]
    dumps = []
    for sample, made in zip(case.samples, job.outputs(case, expected), strict=True):
        values = dict(zip(graph.inputs, arrays(archive, sample), strict=True))
        values |= {t: v for t, v in zip(graph.outputs, made, strict=True) if not isinstance(v, str)}
        dumps.append(dump_of(model, values))
    return ObservedCase(model, tuple(dumps))


def known_samples(observed: ObservedCase, profile: Profile) -> Iterator[Known]:
    """Yield the case's operator in every sample; nothing if it has several, or the profile refuses it."""
    if len(view(observed.model).ops) != 1:
        return
    for dump in observed.dumps:
        try:
            yield Known(operator_alone(observed.model, dump, 0, profile), profile)
        except TflqError:
            return


def _fits(hypothesis: Hypothesis, known: Sequence[Known]) -> bool:
    """Return whether the hypothesis reproduces every bit in all samples."""
    return bool(known) and all(one.fits(hypothesis) for one in known)
