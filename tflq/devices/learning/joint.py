"""One arithmetic for the failing cases of many kernels.

Kernels (operators and types) of a device's results, and the forms that reproduce most cases of each.

For each kernel (operator and types), forms are scored by the cases that they reproduce, passing ones included: forms
that explained other kernels first, then known profiles, then the grammar. Of the forms that reproduce most cases of a
kernel, the one is named that does so for most failing cases of all kernels.

Evidence for joint causes: the cases of a suite that a target ran, or the operators of a device's dump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tflq.comparison.evidence.dumps import Dump
from tflq.devices.learning.asking import DeviceAnswer
from tflq.devices.learning.forms import BASE, EXACT_SUMS, ORDERS, Form, Forms
from tflq.devices.learning.learner import answer_of
from tflq.devices.learning.questions import LearnSubject
from tflq.devices.learning.words import describe
from tflq.devices.suites.causes import is_comparable, observed_case
from tflq.devices.suites.jobs import CaseFolder
from tflq.devices.suites.judge import CaseResult, Judged
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.certainty import Certainty, Weighed, evidence_of
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.hypotheses import HypothesisKind
from tflq.diagnosis.siblings import NONE, Joint, JointCause, Reproduced
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.families.reals import AS_CODES
from tflq.engine.numerics.requantizer import Requantizer, point_of
from tflq.engine.profiles import Profile, by_name
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model
from tflq.model.storage.arrays import Archive

#: Failing cases that are tried with every form.
_TRIED = 3
#: Cases of a kernel that are compared, the smallest first; elements of a case at most.
_CASES, _LARGEST = 120, 1 << 18
#: Forms of a kind that are compared with all cases of a kernel; orders of sums are tried for the best of these.
SCORED, _ORDERED = 16, 3
#: Share of a case's elements from which on a form that misses the others is refuted.
_NEAR = 0.8

#: The part of a form that several kernels can share: a profile's name, or the fields of a form.
Key: TypeAlias = "tuple[str, tuple[tuple[str, object], ...]]"


@dataclass(frozen=True, slots=True, eq=False)
class NamedCase:
    """A device's results of one operator: a case of a suite or an operator of a dump, with its name."""

    name: str
    case: OperatorCase

    @property
    def differs(self) -> bool:
        """True if the profile does not reproduce it."""
        return self.case.differs


def observed_kernels(observed: Iterable[NamedCase]) -> list[ScoredKernel]:
    """Return the kernels that have a differing case, each with all its cases."""
    kernels: dict[LearnSubject, ScoredKernel] = {}
    for one in observed:
        if one.case.score[1] > _LARGEST:
            continue
        pair = answer_of(one.case.parts)
        if pair is not None:
            subject, answer = pair
            kernels.setdefault(subject, ScoredKernel(Forms(subject))).cases.append((one, answer))
    for kernel in kernels.values():
        kernel.cases = sorted(kernel.cases, key=lambda case: (not case[0].differs, case[1].elements))[:_CASES]
    return [kernel for kernel in kernels.values() if kernel.failing]


@dataclass(slots=True)
class ScoredKernel:
    """A kernel's cases, failing ones first."""

    forms: Forms
    cases: list[tuple[NamedCase, DeviceAnswer]] = field(default_factory=list)

    @property
    def subject(self) -> LearnSubject:
        """The operator and its types."""
        return self.forms.subject

    @property
    def failing(self) -> list[DeviceAnswer]:
        """The answers that differ from the profile's."""
        return [answer for one, answer in self.cases if one.differs]

    @property
    def few(self) -> list[DeviceAnswer]:
        """The failing answers that are compared with every form."""
        return _spread(self.failing, _TRIED)

    def add_rivals(self, scored: Scored) -> None:
        """Try the forms that known profiles made unnecessary: a profile may fit by chance."""
        known = self.forms.known(*(answer.draft for answer in self.few))
        changed = (f for f in self.changed(known, ()) if f.kind != "floats" or f.like == BASE)
        everything = self.forms.everything(known) if self.subject.op in EXACT_SUMS else ()
        for forms in (changed, (form for form in everything if is_in_floats(form))):
            scored.add(forms, self.few)

    def scored(self, leading: Sequence[Form]) -> Scored:
        """Return the best forms; a later stage is tried if no form of the stages before reproduces every case.

        `leading` are forms of other kernels.
        """
        few = self.few
        known = self.forms.known(*(answer.draft for answer in few))
        points = [point_of(form.point) for form in leading if form.kind == "requantizer"]
        scored = Scored(self, {name: form for form in known for name in self.forms.alike.get(form.like, [])})
        scored.add([*(form for form in leading if form.kind), *known, *self._requantizing(known, points)], few)
        if not scored.is_whole:
            changed = self.changed(known, points)
            scored.add((form for form in changed if form.kind != "floats" or form.like == BASE), few)
        if not scored.is_whole:
            best = [form for form in scored.best(_ORDERED) if form.kind == "floats"]
            scored.add((replace(form, like=like) for form in best for like in ORDERS if like != BASE), few)
        if not scored.is_whole and not any(form in scored.flags for form in leading):
            scored.add(self.forms.everything(known), few)
        return scored

    def changed(self, known: Sequence[Form], points: Sequence[Requantizer]) -> Iterator[Form]:
        """Yield the forms beside the known ones, without ignored options that no failing case sets.

        An operator that moves codes is not computed in floats.
        """
        for form in self.forms.changed(known, points):
            if form.kind == "ignores" and not self.forms.is_set(form.point["option"]):
                continue
            if form.kind != "floats" or form.point["reals"] != AS_CODES or not self._moves:
                yield form

    @property
    def _moves(self) -> bool:
        """True if the operator moves codes: floats have no part in it."""
        fact = OPERATORS.get(self.subject.op)
        return fact is not None and bool(fact.moves)

    def _requantizing(self, known: Sequence[Form], points: Sequence[Requantizer]) -> Iterator[Form]:
        if points:
            yield from (form for form in self.changed(known, points) if form.kind == "requantizer")


def _spread(answers: Sequence[DeviceAnswer], most: int) -> list[DeviceAnswer]:
    """Return some answers, from the smallest to the middle, of different sizes if there are."""
    half = answers[: max(most, (len(answers) + 1) // 2)]
    return [half[i * len(half) // most] for i in range(most)] if len(half) > most else list(half)


@dataclass(slots=True, eq=False)
class Scored:
    """Forms of a kernel and the cases that each reproduces: one flag per case.

    `plain` are known profiles by all of their names. `tried` counts forms with different results.
    """

    kernel: ScoredKernel
    plain: dict[str, Form]
    flags: dict[Form, tuple[bool, ...]] = field(default_factory=dict)
    shares: dict[Form, tuple[int, int]] = field(default_factory=dict)
    seen: set[Form] = field(default_factory=set)
    results: set[bytes] = field(default_factory=set)

    def add(self, forms: Iterable[Form], few: Sequence[DeviceAnswer]) -> None:
        """Try forms on a few failing cases, and the best of them on all."""
        kernel, tried = self.kernel, []
        for form in forms:
            if form in self.seen:
                continue
            self.seen.add(form)
            self.results.add(kernel.forms.key(form, [few[0].draft]))
            pairs = [kernel.forms.matches(form, answer) for answer in few]
            whole = sum(same == elements for same, elements in pairs)
            self.shares[form] = (whole, sum(same for same, _ in pairs))
            tried.append(form)
        tried.sort(key=lambda form: self.shares[form], reverse=True)  # stable: the simplest first
        scored: Counter[str] = Counter()
        for form in tried:
            scored[form.kind] += 1
            if scored[form.kind] <= SCORED and self.shares[form][0]:
                flags = tuple(kernel.forms.fits(form, [answer]) for _, answer in kernel.cases)
                if self.gains(flags):
                    self.flags[form] = flags

    def gains(self, flags: Sequence[bool]) -> bool:
        """Return whether a form reproduces at least half of the failing cases, and more cases than the profile."""
        failing = [flag for flag, (one, _) in zip(flags, self.kernel.cases, strict=True) if one.differs]
        return 2 * sum(failing) >= len(failing) and sum(flags) > len(flags) - len(failing)

    @property
    def most(self) -> int:
        """The number of cases that the best form reproduces."""
        return max(map(sum, self.flags.values()), default=0)

    @property
    def is_whole(self) -> bool:
        """True if a form reproduces every case."""
        return self.most == len(self.kernel.cases)

    def fits_in_floats(self) -> bool:
        """Return whether a form that computes in floats reproduces as much as the best one."""
        return any(is_in_floats(form) for form in self.fitting().values())

    def is_refuted(self, form: Form) -> bool:
        """Return whether a form nearly reproduces a case: no further fault explains what it misses there."""
        pairs = zip(self.flags[form], self.kernel.cases, strict=True)
        missed = [self.kernel.forms.matches(form, answer) for flag, (_, answer) in pairs if not flag]
        return any(same >= _NEAR * elements for same, elements in missed)

    def may_be(self, key: Key) -> bool:
        """Return whether a form is tried, and no form reproduces more that no case refutes."""
        form = self.fitting(0).get(key)
        better = [] if form is None or sum(self.flags[form]) == self.most else self.fitting().values()
        return form is not None and all(map(self.is_refuted, better))

    def best(self, most: int) -> list[Form]:
        """Return the forms that came nearest on the few cases."""
        return sorted(self.shares, key=lambda form: self.shares[form], reverse=True)[:most]

    def fitting(self, least: int | None = None) -> dict[Key, Form]:
        """Return the forms that reproduce most cases, or at least `least`, by what other kernels can share of them."""
        least = self.most if least is None else least
        found: dict[Key, Form] = {}
        for form, flags in self.flags.items():
            if sum(flags) >= least:
                plain: list[Key] = [(name, ()) for name, own in self.plain.items() if own == form]
                for key in [(form.kind, form.fields)] if form.kind else plain:
                    found.setdefault(key, form)
        return found

    def reproduced(self, flags: Sequence[bool]) -> Reproduced:
        """Return the counts and the evidence of a form with these flags."""
        subject, cases = self.kernel.subject, self.kernel.cases
        differ = [one for one, _ in cases if one.differs]
        right = [one for flag, (one, _) in zip(flags, cases, strict=True) if flag and one.differs]
        tried = max(1, len(self.results))
        evidence = evidence_of([pair for one in right for pair in one.case.pairs], {})
        return Reproduced(
            subject.op,
            subject.types,
            sum(flags),
            len(cases),
            len(right),
            len(differ),
            evidence.bits if evidence.stimuli > 1 else 0,
            Weighed(tried={HypothesisKind.MISTAKE: tried}).needed(HypothesisKind.MISTAKE, is_doubted=False),
        )

    def nearest(self) -> Iterator[tuple[str, Reproduced]]:
        """Yield the form that comes nearest on all cases, if there is one."""
        for form in self.best(1):
            flags = [self.kernel.forms.fits(form, [answer]) for _, answer in self.kernel.cases]
            yield in_words((form.like, ()), form), self.reproduced(flags)


def is_in_floats(form: Form) -> bool:
    """Return whether a form computes in floats: the operator, or the product with a multiplier."""
    if form.kind == "requantizer":
        return not point_of(form.point).is_fixed
    return form.kind in ("floats", "float_sum")


def in_words(key: Key, form: Form) -> str:
    """Return a form in words; a known profile by the name that the kernels share."""
    return describe(form) if form.kind else key[0]


#: Kernels that are searched, those with most failing cases first.
_KERNELS = 100
#: Other arithmetics that are named beside a cause.
_NAMED = 6


def name_jointly(observed: Iterable[NamedCase], tell: Progress = silent) -> Joint:
    """Return the causes of all failing cases, and the nearest arithmetic of kernels without one."""
    kernels = sorted(observed_kernels(observed), key=lambda kernel: -len(kernel.failing))
    searched = kernels[:_KERNELS]
    found: list[Scored] = []
    for done, kernel in enumerate(searched):
        tell(f"naming the arithmetic of {kernel.subject}", done, len(searched))
        found.append(kernel.scored(_leading(found)))
    if not _is_one_profile(found):
        for one in found:
            if one.is_whole and not one.fits_in_floats():
                one.kernel.add_rivals(one)
    causes = _causes(found, prefers_floats=_computes_in_floats(found))
    explained = {(kernel.op, kernel.types) for cause in causes for kernel in cause.kernels}
    rest = [one for one in found if (one.kernel.subject.op, one.kernel.subject.types) not in explained]
    nearest = tuple(pair for one in rest for pair in one.nearest())
    left = len(kernels) - len(searched)
    return Joint(causes, nearest, f"{left} pairs of operator and types were left out" if left else "")


def _leading(found: Sequence[Scored]) -> list[Form]:
    """Return the forms that reproduce every case of the kernels so far, those of most kernels first."""
    counts: dict[Form, int] = {}
    for one in found:
        for form in dict.fromkeys(one.fitting().values()) if one.is_whole else ():
            counts[form] = counts.get(form, 0) + 1
    return sorted(counts, key=lambda form: -counts[form])[:SCORED]


def _is_one_profile(found: Sequence[Scored]) -> bool:
    """Return whether one profile reproduces every kernel that is reproduced whole; else each may fit by chance."""
    profiles = [{name for name, fields in one.fitting() if name in one.plain} for one in found if one.is_whole]
    return not profiles or bool(set.intersection(*profiles))


def _computes_in_floats(found: Sequence[Scored]) -> bool:
    """Return whether forms in floats reproduce most of the failing cases of kernels that are reproduced whole."""
    whole = [one for one in found if one.is_whole]
    reach = [len(one.kernel.failing) for one in whole if one.fits_in_floats()]
    return 2 * sum(reach) > sum(len(one.kernel.failing) for one in whole)


def _causes(found: Sequence[Scored], *, prefers_floats: bool) -> tuple[JointCause, ...]:
    """Return causes, each for all kernels that it fits and that no cause before it explains.

    Of causes with as many failing cases, one that computes in floats goes first if the target does. A form that
    reproduces no kernel whole is no cause if a case refutes it.
    """
    left = [one for one in found if one.flags]
    causes = []
    while left:
        counts: dict[Key, int] = {}
        for one in left:
            for key in one.fitting():
                counts[key] = counts.get(key, 0) + len(one.kernel.failing) * (2 if one.is_whole else 1)
        forms = {key: form for one in left for key, form in one.fitting().items()}
        best = max(counts, key=lambda key: (counts[key], prefers_floats and is_in_floats(forms[key])))
        mine = [one for one in left if best in one.fitting()]
        if any(one.is_whole for one in mine):  # it explains further kernels in part, rather than another cause
            mine += [one for one in left if one not in mine and not one.is_whole and one.may_be(best)]
            causes.append(_cause(best, mine))
        elif not any(one.is_refuted(one.fitting()[best]) for one in mine):
            causes.append(_cause(best, mine))
        left = [one for one in left if one not in mine]
    return tuple(sorted(causes, key=lambda cause: -len(cause.names)))


def _cause(key: Key, scored: Sequence[Scored]) -> JointCause:
    forms = [one.fitting(0)[key] for one in scored]
    flags = [one.flags[form] for one, form in zip(scored, forms, strict=True)]
    kernels = tuple(one.reproduced(flag) for one, flag in zip(scored, flags, strict=True))
    names = tuple(
        case.name
        for one, flag in zip(scored, flags, strict=True)
        for right, (case, _) in zip(flag, one.kernel.cases, strict=True)
        if right and case.differs
    )
    name = in_words(key, forms[0])
    others = tuple(other for other in _rivals(scored, forms) if other != name)[:_NAMED]
    operators = tuple(dict.fromkeys(kernel.op for kernel in kernels))
    failing = sum(kernel.all_failing for kernel in kernels)
    return JointCause(name, others, len(kernels), failing, operators, names, kernels)


def _rivals(scored: Sequence[Scored], forms: Sequence[Form]) -> Iterator[str]:
    """Yield other forms that reproduce as many cases of every kernel that is reproduced whole."""
    whole = [(one, form) for one, form in zip(scored, forms, strict=True) if one.is_whole] or [(scored[0], forms[0])]
    fitting = [one.fitting() for one, _ in whole]
    own = [form for _, form in whole]
    seen = {tuple(own)}
    for key in fitting[0]:
        theirs = tuple(found.get(key) for found in fitting)
        if None not in theirs and theirs not in seen:
            seen.add(theirs)  # type: ignore[arg-type]  # none of them is None
            yield in_words(key, fitting[0][key])


#: Cases of one kernel that are read.
_READ = 160
_COMPARED = (CaseResult.PASSES, CaseResult.DIFFERS)


def causes_of_suite(
    job: CaseFolder, archive: Archive, judged: Sequence[Judged], profile: str, tell: Progress = silent
) -> Joint:
    """Return the causes of a target's failing cases. An error is noted in the result: no verdict depends on it."""
    try:
        return name_jointly(_cases(job, archive, judged, by_name(profile)), tell)
    except Exception as error:
        return Joint(fault=f"{type(error).__name__}: {error}")


def _cases(job: CaseFolder, archive: Archive, judged: Sequence[Judged], profile: Profile) -> Iterator[NamedCase]:
    failing = {(one.case.op, one.case.types) for one in judged if one.result == CaseResult.DIFFERS}
    read: dict[tuple[str, str], int] = {}
    for one in sorted(judged, key=lambda one: one.result != CaseResult.DIFFERS):
        kernel = one.case.op, one.case.types
        if one.case.is_refused or one.result not in _COMPARED or kernel not in failing:
            continue
        read[kernel] = read.get(kernel, 0) + 1
        if read[kernel] <= _READ:
            case = observed_case(job, archive, one, profile)
            if is_comparable(case):
                yield NamedCase(one.case.id, case)


def causes_of_dump(model: Model, samples: Sequence[Dump], profile: Profile, findings: Findings) -> Joint:
    """Return the joint causes of a dump's operators; none unless one differs that nothing known reproduces."""
    explanation = findings.explanation
    if findings.first is None or explanation is None or explanation.assumed:
        return NONE
    if explanation.exact or (explanation.is_a_defect and explanation.certainty != Certainty.NONE):
        return NONE
    try:
        return name_jointly(_operators(model, samples, profile, findings))
    except Exception as error:
        return Joint(fault=f"{type(error).__name__}: {error}")


def _operators(model: Model, samples: Sequence[Dump], profile: Profile, findings: Findings) -> Iterator[NamedCase]:
    codes = {o.op for o in findings.differing}
    for located in findings.operators:
        if located.op in codes and located.differences and not located.assumed:
            case = OperatorCase(model, tuple(samples), located.index, profile)
            if case.is_computable:
                yield NamedCase(str(located.index), case)
