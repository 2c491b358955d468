"""Name one arithmetic for failing cases of many kernels, in the grammar of profiles' files.

For each kernel (operator and types), forms are scored by the cases that they reproduce, passing ones included: forms
that explained other kernels first, then known profiles, then the grammar. Of the forms that reproduce most cases of a
kernel, the one is named that does so for most failing cases of all kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tflq.devices.learning.answer import Answer
from tflq.devices.learning.form import BASE, Form
from tflq.devices.learning.forms import ORDERS, Forms
from tflq.devices.learning.passive import answer_of
from tflq.devices.learning.subjects import Subject
from tflq.devices.learning.words import describe
from tflq.diagnosis.certainty import Evidence, evidence_of
from tflq.diagnosis.hypotheses import Kind
from tflq.diagnosis.joint import Joint, JointCause, Reproduced
from tflq.diagnosis.siblings import Known
from tflq.engine.numerics.requantizer import Requantizer, point_of
from tflq.progress import Progress, silent

#: Kernels that are searched, those with most failing cases first; failing cases that are tried with every form.
_KERNELS, _TRIED = 100, 3
#: Cases of a kernel that are compared, the smallest first; elements of a case at most.
_CASES, _LARGEST = 120, 1 << 18
#: Forms of a kernel that are compared with all of its cases; orders of sums are tried for the best of these.
_SCORED, _ORDERED = 16, 3
#: Other arithmetics that are named beside a cause.
_NAMED = 6

#: The part of a form that several kernels can share: a profile's name, or the fields of a form.
Key: TypeAlias = "tuple[str, tuple[tuple[str, object], ...]]"


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A device's results of one operator: a case of a suite or an operator of a dump, with one part per sample."""

    name: str
    known: tuple[Known, ...]

    @property
    def differs(self) -> bool:
        """True if the profile does not reproduce it."""
        return any(one.differs for one in self.known)

    @property
    def elements(self) -> int:
        """The number of output elements."""
        return sum(value.size for one in self.known for value in one.part.got.values())


def name_jointly(observed: Iterable[Observed], tell: Progress = silent) -> Joint:
    """Return the causes of all failing cases, and the nearest arithmetic of kernels without one."""
    kernels = sorted(_kernels(observed), key=lambda kernel: -len(kernel.failing))
    searched = kernels[:_KERNELS]
    found: list[_Scored] = []
    for done, kernel in enumerate(searched):
        tell(f"naming the arithmetic of {kernel.subject}", done, len(searched))
        found.append(kernel.scored(_leading(found)))
    causes = _causes(found)
    explained = {(kernel.op, kernel.types) for cause in causes for kernel in cause.kernels}
    rest = [one for one in found if (one.kernel.subject.op, one.kernel.subject.types) not in explained]
    nearest = tuple(pair for one in rest for pair in one.nearest())
    left = len(kernels) - len(searched)
    return Joint(causes, nearest, f"{left} pairs of operator and types were left out" if left else "")


def _kernels(observed: Iterable[Observed]) -> list[_Kernel]:
    """Return the kernels that have a differing case, each with all its cases."""
    kernels: dict[Subject, _Kernel] = {}
    for one in observed:
        if one.elements > _LARGEST:
            continue
        pair = answer_of([known.part for known in one.known])
        if pair is not None:
            subject, answer = pair
            kernels.setdefault(subject, _Kernel(Forms(subject))).cases.append((one, answer))
    for kernel in kernels.values():
        kernel.cases = sorted(kernel.cases, key=lambda case: (not case[0].differs, case[1].elements))[:_CASES]
    return [kernel for kernel in kernels.values() if kernel.failing]


@dataclass(slots=True)
class _Kernel:
    """A kernel's cases, failing ones first."""

    forms: Forms
    cases: list[tuple[Observed, Answer]] = field(default_factory=list)

    @property
    def subject(self) -> Subject:
        """The operator and its types."""
        return self.forms.subject

    @property
    def failing(self) -> list[Answer]:
        """The answers that differ from the profile's."""
        return [answer for one, answer in self.cases if one.differs]

    def scored(self, leading: Sequence[Form]) -> _Scored:
        """Return the best forms; a later stage is tried if no form of the stages before reproduces every case.

        `leading` are forms of other kernels.
        """
        few = _spread(self.failing, _TRIED)
        drafts = [answer.draft for answer in few]
        known = self.forms.known(*drafts)
        points = [point_of(form.point) for form in leading if form.kind == "requantizer"]
        scored = _Scored(self, {name: form for form in known for name in self.forms.alike.get(form.like, [])})
        scored.add([*known, *(form for form in leading if form.kind), *self._requantizing(known, points)], few)
        if not scored.is_whole:
            changed = self.forms.changed(known, points)
            scored.add((form for form in changed if form.kind != "floats" or form.like == BASE), few)
        if not scored.is_whole:
            best = [form for form in scored.best(_ORDERED) if form.kind == "floats"]
            scored.add((replace(form, like=like) for form in best for like in ORDERS if like != BASE), few)
        if not scored.is_whole and not any(form in scored.flags for form in leading):
            scored.add(self.forms.everything(known), few)
        return scored

    def _requantizing(self, known: Sequence[Form], points: Sequence[Requantizer]) -> Iterator[Form]:
        if points:
            yield from (form for form in self.forms.changed(known, points) if form.kind == "requantizer")


def _spread(answers: Sequence[Answer], most: int) -> list[Answer]:
    """Return some answers, from the smallest to the middle, of different sizes if there are."""
    half = answers[: max(most, (len(answers) + 1) // 2)]
    return [half[i * len(half) // most] for i in range(most)] if len(half) > most else list(half)


@dataclass(slots=True, eq=False)
class _Scored:
    """Forms of a kernel and the cases that each reproduces: one flag per case.

    `plain` are known profiles by all of their names. `tried` counts forms with different results.
    """

    kernel: _Kernel
    plain: dict[str, Form]
    flags: dict[Form, tuple[bool, ...]] = field(default_factory=dict)
    shares: dict[Form, tuple[int, int]] = field(default_factory=dict)
    seen: set[Form] = field(default_factory=set)
    results: set[bytes] = field(default_factory=set)

    def add(self, forms: Iterable[Form], few: Sequence[Answer]) -> None:
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
        for form in tried[:_SCORED]:
            if self.shares[form][0]:
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

    def best(self, most: int) -> list[Form]:
        """Return the forms that came nearest on the few cases."""
        return sorted(self.shares, key=lambda form: self.shares[form], reverse=True)[:most]

    def fitting(self, least: int | None = None) -> dict[Key, Form]:
        """Return the forms that reproduce most cases, or at least `least`, by what other kernels can share of them."""
        least = self.most if least is None else least
        names = {form.like: [name for name, own in self.plain.items() if own == form] for form in self.flags}
        found: dict[Key, Form] = {}
        for form, flags in self.flags.items():
            if sum(flags) >= least:
                for key in [(form.kind, form.fields)] if form.kind else [(n, ()) for n in names[form.like]]:
                    found.setdefault(key, form)
        return found

    def reproduced(self, flags: Sequence[bool]) -> Reproduced:
        """Return the counts and the evidence of a form with these flags."""
        subject, cases = self.kernel.subject, self.kernel.cases
        differ = [one for one, _ in cases if one.differs]
        right = [one for flag, (one, _) in zip(flags, cases, strict=True) if flag and one.differs]
        tried = max(1, len(self.results))
        evidence = evidence_of([(known.part, known.base) for one in right for known in one.known], {})
        return Reproduced(
            subject.op,
            subject.types,
            sum(flags),
            len(cases),
            len(right),
            len(differ),
            evidence.bits if evidence.stimuli > 1 else 0,
            Evidence(tried={Kind.MISTAKE: tried}).needed(Kind.MISTAKE, is_doubted=False),
        )

    def nearest(self) -> Iterator[tuple[str, Reproduced]]:
        """Yield the form that comes nearest on all cases, if there is one."""
        for form in self.best(1):
            flags = [self.kernel.forms.fits(form, [answer]) for _, answer in self.kernel.cases]
            yield _words((form.like, ()), form), self.reproduced(flags)


def _leading(found: Sequence[_Scored]) -> list[Form]:
    """Return the forms that reproduce every case of the kernels so far, those of most kernels first."""
    counts: dict[Form, int] = {}
    for one in found:
        for form in dict.fromkeys(one.fitting().values()) if one.is_whole else ():
            counts[form] = counts.get(form, 0) + 1
    return sorted(counts, key=lambda form: -counts[form])[:_SCORED]


def _causes(found: Sequence[_Scored]) -> tuple[JointCause, ...]:
    """Return causes, each for all kernels that it fits and that no cause before it explains."""
    left = [one for one in found if one.flags]
    causes = []
    while left:
        counts: dict[Key, int] = {}
        for one in left:
            for key in one.fitting():
                counts[key] = counts.get(key, 0) + len(one.kernel.failing) * (2 if one.is_whole else 1)
        best = max(counts, key=lambda key: counts[key])
        mine = [one for one in left if best in one.fitting()]
        if any(one.is_whole for one in mine):  # it explains further kernels in part, rather than another cause
            mine += [one for one in left if one not in mine and not one.is_whole and best in one.fitting(0)]
        causes.append(_cause(best, mine))
        left = [one for one in left if one not in mine]
    return tuple(sorted(causes, key=lambda cause: -len(cause.names)))


def _cause(key: Key, scored: Sequence[_Scored]) -> JointCause:
    forms = [one.fitting(0)[key] for one in scored]
    flags = [one.flags[form] for one, form in zip(scored, forms, strict=True)]
    kernels = tuple(one.reproduced(flag) for one, flag in zip(scored, flags, strict=True))
    names = tuple(
        case.name
        for one, flag in zip(scored, flags, strict=True)
        for right, (case, _) in zip(flag, one.kernel.cases, strict=True)
        if right and case.differs
    )
    name = _words(key, forms[0])
    others = tuple(other for other in _rivals(scored, forms) if other != name)[:_NAMED]
    operators = tuple(dict.fromkeys(kernel.op for kernel in kernels))
    failing = sum(kernel.all_failing for kernel in kernels)
    return JointCause(name, others, len(kernels), failing, operators, names, kernels)


def _rivals(scored: Sequence[_Scored], forms: Sequence[Form]) -> Iterator[str]:
    """Yield other forms that reproduce as many cases of every kernel that is reproduced whole."""
    whole = [(one, form) for one, form in zip(scored, forms, strict=True) if one.is_whole] or [(scored[0], forms[0])]
    fitting = [one.fitting() for one, _ in whole]
    own = [form for _, form in whole]
    seen = {tuple(own)}
    for key in fitting[0]:
        theirs = tuple(found.get(key) for found in fitting)
        if None not in theirs and theirs not in seen:
            seen.add(theirs)  # type: ignore[arg-type]  # none of them is None
            yield _words(key, fitting[0][key])


def _words(key: Key, form: Form) -> str:
    """Return a form in words; a known profile by the name that the kernels share."""
    return describe(form) if form.kind else key[0]
