"""Answers of a target about one operator, and the forms of the grammar that reproduce them, in order of preference.

Nothing is asked here: `operators` asks, and takes new answers in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.channels import repeating_channels
from tflq.devices.learning.exceptions import Holds, holding, is_held, usual_parts
from tflq.devices.learning.findings import Learned, State
from tflq.devices.learning.form import Form, requantizing
from tflq.devices.learning.forms import Forms
from tflq.devices.learning.further import further
from tflq.devices.learning.requantizing import Requantized
from tflq.devices.learning.subjects import Subject
from tflq.diagnosis.certainty import inside
from tflq.engine.numerics.requantizer import Requantizer

#: Operators whose accumulators can be chosen freely: their requantizers are learned by themselves.
CONTRACTIONS = ("CONV_2D", "FULLY_CONNECTED", "DEPTHWISE_CONV_2D")
#: Fresh elements inside their type's range that a form needs where nothing can be asked.
_TELLING = 32
#: Points of an operator's own requantizer that are tried; forms whose shares are computed.
_OWN, _SCORED = 4, 24
#: Answers that score forms; answers that all forms are compared with before the first that fits is sought.
_FIRST, _FEW = 3, 8
#: Forms beside the first that are compared with every answer up to a size in elements.
COMPARED, _LARGE = 24, 1 << 14


@dataclass(frozen=True, slots=True)
class Effort:
    """Numbers of models per operator in the first batch and in a fresh one, and the seed of all draws."""

    first: int = 24
    fresh: int = 32
    seed: int = 0


@dataclass(slots=True)
class Shared:
    """Requantizers that operators of one device share, by operator and type."""

    requantizers: dict[tuple[str, str], Requantized] = field(default_factory=dict)

    def points(self, kind: str) -> list[Requantizer]:
        """Return the simplest points that were learned, those of the same type first."""
        found = [
            r.points[0] for (_, k), r in sorted(self.requantizers.items(), key=lambda i: i[0][1] != kind) if r.points
        ]
        return list(dict.fromkeys(found))

    def of(self, subject: Subject) -> Requantized | None:
        """Return what is known of a subject's own requantizer."""
        return self.requantizers.get((subject.op, subject.kind))


@dataclass(slots=True)
class Candidates:
    """Answers so far, and the forms that reproduce them in order of preference."""

    forms: Forms
    answers: list[Answer]
    effort: Effort
    left: list[Form] = field(default_factory=list)
    tried: int = 0
    known: list[Form] = field(default_factory=list)
    fresh: int = 0
    fresh_elements: int = 0
    covered: int = 0
    turns: int = 0  # of splitting
    points: list[Requantizer] = field(default_factory=list)  # of this operator and of others
    only: Holds | None = None  # the models for which forms are sought, if not all
    stages: list[Iterator[Form]] = field(default_factory=list)
    shares: list[tuple[float, Form]] = field(default_factory=list)

    @property
    def subject(self) -> Subject:
        """The subject that is learned."""
        return self.forms.subject

    def choose(self, shared: Shared, mine: Requantized | None) -> None:
        """Find the forms that reproduce every answer: known ones, shared and own requantizers, then all others."""
        self.known = self.forms.known(self.answers[0].draft)
        own = [] if mine is None else _different(mine.points or mine.inner)
        points = list(dict.fromkeys([*shared.points(self.subject.kind), *own]))
        self.points = points
        self.left = self._fitting([*self.known, *self.forms.changed(self.known, points)])
        if self.subject.kind in KINDS:
            if mine is None:
                self.stages.append(self.forms.everything(self.known))
            self.stages += further(self.forms, self.known, own or points)

    def narrow(self) -> Form | None:
        """Find forms that reproduce the answers of one usual option, and the models for which they hold."""
        everything, shares = self.answers, self.shares
        for names, some in usual_parts(self.forms, everything) if self.only is None else ():
            self.answers, self.shares = some, []
            self.left = self._fitting([*self.known, *self.forms.changed(self.known, self.points)])
            form = self.best()
            if form is None:
                continue
            right = [answer for answer in everything if self.forms.fits(form, [answer])]
            wrong = [answer for answer in everything if answer not in right]
            self.only = holding(self.forms, wrong, right, names)
            if self.only is not None:
                self.answers = self.hold(everything)
                return form
        self.answers, self.shares, self.left = everything, shares, []
        return None

    def hold(self, answers: Sequence[Answer]) -> list[Answer]:
        """Return the answers for whose models forms are sought."""
        only = self.only
        return [a for a in answers if a.is_answered and (only is None or is_held(self.forms, a, only))]

    def _fitting(self, forms: Iterable[Form]) -> list[Form]:
        """Return the forms that reproduce the first answers; `best` compares them with the others."""
        found = []
        smallest, *others = self._telling_first()
        for form in forms:
            self.tried += 1
            same, elements = self.forms.matches(form, smallest)
            if same == elements and self.forms.fits(form, others):
                found.append(form)
            elif same:
                self.shares.append((same / elements, form))
        self.shares = sorted(self.shares, key=lambda share: -share[0])[:_SCORED]
        return found

    def _telling_first(self) -> list[Answer]:
        """Return the first answers; once forms were tried, the one first of which they reproduce least."""
        few = self.answers[:_FEW]
        forms = [form for _, form in self.shares[:_FIRST]]
        if not forms:
            return few
        shares = [max(self.forms.matches(form, answer)[0] for form in forms) / answer.elements for answer in few]
        return [few[at] for at in np.argsort(shares, kind="stable")]

    def best(self) -> Form | None:
        """Return the first form left that reproduces every answer, and drop those before it.

        If none is left, forms are tried that were not yet.
        """
        while True:
            while self.left and not self.forms.fits(self.left[0], self.answers[_FEW:]):
                del self.left[0]
            if self.left or not self.stages:
                return self.left[0] if self.left else None
            self.left = self._fitting(self.stages.pop(0))

    def keep(self, answers: Sequence[Answer]) -> None:
        """Take new answers in, and drop the forms that do not reproduce them; large ones count for the first form."""
        new = self.hold(answers)
        self.answers += new
        small = [answer for answer in new if answer.elements <= _LARGE]
        first = [form for form in self.left[:1] if self.forms.fits(form, new)]
        self.left = first + [form for form in self.left[1:] if self.forms.fits(form, small)]

    def confirm_by(self, answers: Sequence[Answer]) -> Learned:
        """Return what is known after answers that selected nothing; nothing can be asked."""
        best = self.best()
        self.keep(answers)
        if best is not None and self.left and self.left[0] == best and sum(map(_telling, answers)) >= _TELLING:
            self.fresh, self.fresh_elements = len(answers), sum(answer.elements for answer in answers)
            return self.conclude(State.LEARNED, "")
        best = self.best()
        if best is None:
            return self.name_nearest()
        note = "too few answers are left to confirm it"
        return replace(self.conclude(State.UNKNOWN, note), nearest=best, share=self.share())

    def share(self) -> tuple[int, int]:
        """Return how many elements the first form left reproduces, and of how many."""
        best = self.best()
        pairs = [] if best is None else [self.forms.matches(best, answer) for answer in self.answers]
        return sum(same for same, _ in pairs), sum(elements for _, elements in pairs)

    def conclude(self, state: State, note: str) -> Learned:
        """Return what is known, with the first form left if it is learned."""
        is_learned = state is State.LEARNED
        form = self.left[0] if is_learned else None
        if form is not None and self.only is not None:
            state, form = State.PARTLY, form.changed("only", **self.only)
        return Learned(
            self.subject,
            state,
            form=form,
            also=tuple(self._beside()) if is_learned and self.only is None else (),
            alike=self.forms.alike if is_learned else {},
            asked=len(self.answers) - (self.fresh if is_learned else 0),
            fresh=self.fresh if is_learned else 0,
            fresh_elements=self.fresh_elements if is_learned else 0,
            fresh_exact=self.fresh_elements if is_learned else 0,
            tried=self.tried,
            covered=self.covered,
            note=note,
        )

    def _beside(self) -> list[Form]:
        """Return the forms beside the first that reproduce every answer, as far as they are compared."""
        fresh = [answer for answer in self.answers if answer.elements <= _LARGE][_FEW:]
        return [form for form in self.left[1:COMPARED] if self.forms.fits(form, fresh)]

    def name_nearest(self) -> Learned:
        """Name the form of the grammar that reproduces most elements."""
        few = self.answers[: _FIRST * 2]
        scored = []
        own = [requantizing(point) for point in self.points[:_OWN]] if self.subject.op in CONTRACTIONS else []
        for form in dict.fromkeys([*own, *self.known[:_SCORED], *(form for _, form in self.shares)]):
            same, elements = map(sum, zip(*(self.forms.matches(form, answer) for answer in few), strict=True))
            scored.append((same / max(elements, 1), form))
        leading = [form for _, form in sorted(scored, key=lambda s: -s[0])[:_OWN]]
        pairs = {form: [self.forms.matches(form, answer) for answer in self.answers] for form in [*own, *leading]}
        best = max(pairs, key=lambda form: sum(same == elements for same, elements in pairs[form]))
        share = sum(same for same, _ in pairs[best]), sum(elements for _, elements in pairs[best])
        note = repeating_channels(self.forms, best, self.answers)
        return replace(self.conclude(State.UNKNOWN, note), nearest=best, share=share)


def choose_by(subject: Subject, answers: Sequence[Answer], shared: Shared, effort: Effort) -> Candidates:
    """Return the course of a subject whose forms are chosen by some answers, without any question."""
    course = Candidates(Forms(subject), sorted(answers, key=lambda a: a.elements), effort)
    course.choose(shared, None)
    return course


def _different(points: Sequence[Requantizer]) -> list[Requantizer]:
    """Return the first points, and the first of each width of accumulators."""
    first: dict[str, Requantizer] = {}
    for point in points:
        first.setdefault(point.accumulator, point)
    return list(dict.fromkeys([*points[:1], *list(first.values())[:_OWN], *points[:_OWN]]))


def _telling(answer: Answer) -> int:
    """Return the number of elements that are neither the lowest nor the highest of their type."""
    return sum(inside(output) for sample in answer.outputs for output in sample)
