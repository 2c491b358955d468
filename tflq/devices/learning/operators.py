"""Learn one operator: a first batch, the forms that reproduce it, questions that split them, and fresh ones."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.making import reaching
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.channels import repeating_channels
from tflq.devices.learning.exceptions import Holds, exception, holding, is_held, usual_parts
from tflq.devices.learning.findings import Learned, State
from tflq.devices.learning.form import BASE, Form, requantizing
from tflq.devices.learning.forms import Forms
from tflq.devices.learning.further import further, rearranged
from tflq.devices.learning.probes import draw, extreme
from tflq.devices.learning.requantizing import Requantized, learned_requantizer
from tflq.devices.learning.splitting import doubting, splitting
from tflq.devices.learning.subjects import KINDS, Subject
from tflq.devices.learning.tables import as_tables
from tflq.diagnosis.certainty import inside
from tflq.engine.numerics.requantizer import Requantizer

#: A course of questions about one operator.
Course: TypeAlias = "Generator[list[Draft], list[Answer], Learned]"

#: Operators whose accumulators can be chosen freely: their requantizers are learned by themselves.
CONTRACTIONS = ("CONV_2D", "FULLY_CONNECTED", "DEPTHWISE_CONV_2D")
#: Fresh elements inside their type's range that a form needs where nothing can be asked.
_TELLING = 32
#: Rounds of splitting questions, and of fresh ones.
_ROUNDS, _FRESH_ROUNDS = 6, 4
#: Points of an operator's own requantizer that are tried; forms whose shares are computed.
_OWN, _SCORED = 4, 24
#: Answers that score forms; answers that all forms are compared with before the first that fits is sought.
_FIRST, _FEW = 3, 8
#: Forms of each kind that came near, from which the first form left is parted.
_RIVALS = 4
#: Rounds of other geometries, each of which chooses a form or confirms one.
_COVERED = 3
#: Forms beside the first that are compared with every answer up to a size in elements.
_COMPARED, _LARGE = 24, 1 << 14


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


def can_be_probed(subject: Subject) -> bool:
    """Return whether a subject's accumulators can be chosen freely."""
    return subject.op in CONTRACTIONS and subject.types == f"{subject.kind} {subject.kind} int32 -> {subject.kind}"


def learned_operator(subject: Subject, shared: Shared, effort: Effort) -> Course:
    """Ask about a subject until one form is left and confirmed, or none is."""
    forms = Forms(subject)
    first = subject.drafts(effort.seed, effort.first)
    answers = yield [*first, first[0]]
    *once, again = answers
    seen = [answer for answer in once if answer.is_answered]
    refused = sum(answer.refused for answer in once)
    if not seen and all(answer.refused for answer in once):  # it may take other options, shapes or types of scales
        once = yield subject.covering(effort.seed)
        seen = [answer for answer in once if answer.is_answered]
        again = once[0]
    if not seen:
        return _unanswered(subject, once)
    if once[0].is_answered and not (again.is_answered and once[0].same(again)):
        return Learned(subject, State.UNSTABLE, asked=len(seen) + 1, note="equal questions had different answers")
    mine = shared.of(subject)
    if mine is None and can_be_probed(subject) and subject.kind != "int16":
        mine = yield from learned_requantizer(subject.op, subject.kind, effort.seed)
        shared.requantizers[subject.op, subject.kind] = mine
    sharp = [] if mine is None else list(mine.asked)
    course = _Course(forms, sorted(seen, key=lambda a: a.elements) + sharp, effort)
    course.choose(shared, mine)
    learned = yield from course.confirm()
    return replace(learned, refused=refused + learned.refused)


def _different(points: Sequence[Requantizer]) -> list[Requantizer]:
    """Return the first points, and the first of each width of accumulators."""
    first: dict[str, Requantizer] = {}
    for point in points:
        first.setdefault(point.accumulator, point)
    return list(dict.fromkeys([*points[:1], *list(first.values())[:_OWN], *points[:_OWN]]))


def choose_by(subject: Subject, answers: Sequence[Answer], shared: Shared, effort: Effort) -> _Course:
    """Return the course of a subject whose forms are chosen by some answers, without any question."""
    course = _Course(Forms(subject), sorted(answers, key=lambda a: a.elements), effort)
    course.choose(shared, None)
    return course


def _unanswered(subject: Subject, answers: Sequence[Answer]) -> Learned:
    reason = next((a.reason for a in answers if not a.refused), answers[0].reason)
    if reason.startswith("not asked"):
        return Learned(subject, State.OPEN, note=reason)
    state = State.REFUSED if all(answer.refused for answer in answers) else State.FAILED
    return Learned(subject, state, refused=sum(answer.refused for answer in answers), note=reason[:200])


@dataclass(slots=True)
class _Course:
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

    def _narrow(self) -> Form | None:
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
                self.answers = self._held(everything)
                return form
        self.answers, self.shares, self.left = everything, shares, []
        return None

    def _held(self, answers: Sequence[Answer]) -> list[Answer]:
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
        new = self._held(answers)
        self.answers += new
        small = [answer for answer in new if answer.elements <= _LARGE]
        first = [form for form in self.left[:1] if self.forms.fits(form, new)]
        self.left = first + [form for form in self.left[1:] if self.forms.fits(form, small)]

    def confirm(self) -> Course:
        """Split the forms left, confirm the first by fresh questions, and return what is known."""
        for turn in range(_FRESH_ROUNDS):
            yield from self._split()
            yield from self._doubt(turn)
            best = self.best() or self._narrow()
            if best is None:
                break
            drafts = self._fresh(turn)
            answers = yield drafts
            told = self._held(answers)
            if not told:
                note = next((answer.reason for answer in answers), "")
                return self._finding(State.OPEN, f"no fresh question was answered: {note}"[:200])
            self.keep(answers)
            if self.left and self.left[0] == best:
                self.fresh, self.fresh_elements = len(told), sum(answer.elements for answer in told)
                return (yield from self._cover(best))
        return (yield from self._fallback())

    def _split(self) -> Generator[list[Draft], list[Answer], None]:
        """Ask questions on which the forms left differ, until no more are found."""
        for _ in range(_ROUNDS):
            if self.best() is None or len(self.left) < 2:
                break
            chosen = splitting(self.forms, self.left, self.effort.seed, self.turns)
            self.turns += 1
            if not chosen:
                break
            self.keep((yield chosen))

    def _doubt(self, turn: int) -> Generator[list[Draft], list[Answer], None]:
        """Ask questions on which the first form left differs from others that came near, until it reproduces them."""
        for again in range(_ROUNDS):
            best = self.best()
            by_kind: dict[str, list[Form]] = {}
            for _, form in self.shares:
                by_kind.setdefault(form.kind, []).append(form)
            rivals = [form for some in by_kind.values() for form in some[:_RIVALS]]
            drafts = [] if best is None else doubting(self.forms, best, rivals, self.effort.seed, turn + again)
            if not drafts:
                break
            self.keep((yield drafts))
            if self.left and self.left[0] == best:
                break

    def _cover(self, best: Form) -> Course:
        """Claim a form if it reproduces every geometry and extreme; else find another, or state for what it holds."""
        first: tuple[list[Answer], list[Answer]] | None = None
        form: Form | None = best
        for turn in range(_COVERED):
            told = yield from self._ask_to_cover(turn)
            wrong = [answer for answer in told if form is not None and not self.forms.fits(form, [answer])]
            self.answers += told
            if not wrong:
                self.left = [one for one in self.left[:_COMPARED] if one is form or self.forms.fits(one, told)]
                return self._claimed(told)
            right = [answer for answer in told if answer not in wrong]
            first = first or (wrong, right)
            # The wrong answers choose another form, so that only others can confirm it.
            self.answers.sort(key=lambda answer: (answer not in wrong, answer.elements))
            if turn == 0:
                self.stages[:0] = rearranged(self.forms, (), first=best)
            yield from self._split()
            form = self.best()
            if form is None:
                break
        assert first is not None  # a form was wrong
        return (yield from self._hold_in_part(best, *first))

    def _hold_in_part(self, best: Form, wrong: Sequence[Answer], right: Sequence[Answer]) -> Course:
        """Claim a form for the geometries that it reproduces if others confirm it; else state what is known of it."""
        condition = None if self.only else holding(self.forms, wrong, right)
        if condition is not None:
            form = best.changed("only", **condition)
            told = yield from self._ask_to_cover(_COVERED)
            told = [answer for answer in told if self.forms.results(form, answer.draft) is not None]
            if told and self.forms.fits(form, told):
                self.left = [form]
                return replace(self._claimed(told), state=State.PARTLY, also=(), note=exception(wrong, right))
        found = replace(self._finding(State.UNKNOWN, exception(wrong, right)), nearest=best)
        pairs = [self.forms.matches(best, answer) for answer in self.answers]
        return replace(found, share=(sum(same for same, _ in pairs), sum(elements for _, elements in pairs)))

    def _ask_to_cover(self, turn: int) -> Generator[list[Draft], list[Answer], list[Answer]]:
        """Ask every geometry and extreme, or drafts of all aims; another turn has other geometries and numbers."""
        drafts = [reaching(draft, BASE) for draft in self.subject.covering(self.effort.seed, turn)]
        told = self._held((yield drafts)) if drafts else []
        self.covered += len(told)
        return told

    def _claimed(self, told: Sequence[Answer]) -> Learned:
        self.fresh, self.fresh_elements = self.fresh + len(told), self.fresh_elements + sum(a.elements for a in told)
        return self._finding(State.LEARNED, "")

    def confirm_by(self, answers: Sequence[Answer]) -> Learned:
        """Return what is known after answers that selected nothing; nothing can be asked."""
        best = self.best()
        self.keep(answers)
        if best is not None and self.left and self.left[0] == best and sum(map(_telling, answers)) >= _TELLING:
            self.fresh, self.fresh_elements = len(answers), sum(answer.elements for answer in answers)
            return self._finding(State.LEARNED, "")
        best = self.best()
        if best is None:
            return self._nearest()
        note = "too few answers are left to confirm it"
        return replace(self._finding(State.UNKNOWN, note), nearest=best, share=self.share())

    def share(self) -> tuple[int, int]:
        """Return how many elements the first form left reproduces, and of how many."""
        best = self.best()
        pairs = [] if best is None else [self.forms.matches(best, answer) for answer in self.answers]
        return sum(same for same, _ in pairs), sum(elements for _, elements in pairs)

    def _fresh(self, turn: int) -> list[Draft]:
        """Return drafts of a draw that nothing was chosen by."""
        drafts = self.subject.drafts(self.effort.seed + 100 + turn, self.effort.fresh)
        if can_be_probed(self.subject) and self.subject.kind != "int16":
            rng = np.random.default_rng([self.effort.seed, 12, turn])
            op, kind = self.subject.op, self.subject.kind
            drafts += [probe.draft(op, kind) for probe in (*draw(rng, op, kind, 4), *extreme(rng, op, kind, 2))]
        return drafts

    def _finding(self, state: State, note: str) -> Learned:
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
        return [form for form in self.left[1:_COMPARED] if self.forms.fits(form, fresh)]

    def _fallback(self) -> Course:
        """Learn tables of codes where that is possible; else name the nearest form and its share."""
        tables = yield from as_tables(self.subject, self.answers)
        if tables is not None:
            return replace(tables, tried=self.tried)
        return self._nearest()

    def _nearest(self) -> Learned:
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
        return replace(self._finding(State.UNKNOWN, note), nearest=best, share=share)


def _telling(answer: Answer) -> int:
    """Return the number of elements that are neither the lowest nor the highest of their type."""
    return sum(inside(output) for sample in answer.outputs for output in sample)
