"""Kernels (operators and types) of a device's results, and the forms that reproduce most cases of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tflq.devices.learning.answer import Answer
from tflq.devices.learning.form import BASE, Form
from tflq.devices.learning.forms import EXACT_SUMS, ORDERS, Forms
from tflq.devices.learning.passive import answer_of
from tflq.devices.learning.subjects import Subject
from tflq.devices.learning.words import describe
from tflq.diagnosis.certainty import Evidence, evidence_of
from tflq.diagnosis.hypotheses import Kind
from tflq.diagnosis.joint import Reproduced
from tflq.diagnosis.siblings import Known
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.families.through_floats import AS_CODES
from tflq.engine.numerics.requantizer import Requantizer, point_of

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


def observed_kernels(observed: Iterable[Observed]) -> list[Kernel]:
    """Return the kernels that have a differing case, each with all its cases."""
    kernels: dict[Subject, Kernel] = {}
    for one in observed:
        if one.elements > _LARGEST:
            continue
        pair = answer_of([known.part for known in one.known])
        if pair is not None:
            subject, answer = pair
            kernels.setdefault(subject, Kernel(Forms(subject))).cases.append((one, answer))
    for kernel in kernels.values():
        kernel.cases = sorted(kernel.cases, key=lambda case: (not case[0].differs, case[1].elements))[:_CASES]
    return [kernel for kernel in kernels.values() if kernel.failing]


@dataclass(slots=True)
class Kernel:
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

    @property
    def few(self) -> list[Answer]:
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


def _spread(answers: Sequence[Answer], most: int) -> list[Answer]:
    """Return some answers, from the smallest to the middle, of different sizes if there are."""
    half = answers[: max(most, (len(answers) + 1) // 2)]
    return [half[i * len(half) // most] for i in range(most)] if len(half) > most else list(half)


@dataclass(slots=True, eq=False)
class Scored:
    """Forms of a kernel and the cases that each reproduces: one flag per case.

    `plain` are known profiles by all of their names. `tried` counts forms with different results.
    """

    kernel: Kernel
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
            yield in_words((form.like, ()), form), self.reproduced(flags)


def is_in_floats(form: Form) -> bool:
    """Return whether a form computes in floats: the operator, or the product with a multiplier."""
    if form.kind == "requantizer":
        return not point_of(form.point).is_fixed
    return form.kind in ("floats", "float_sum")


def in_words(key: Key, form: Form) -> str:
    """Return a form in words; a known profile by the name that the kernels share."""
    return describe(form) if form.kind else key[0]
