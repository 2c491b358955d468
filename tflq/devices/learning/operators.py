"""Learn one operator: a first batch, the forms that reproduce it, questions that split them, and fresh ones."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.making import reaching
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.candidates import COMPARED, CONTRACTIONS, Candidates, Effort, Shared
from tflq.devices.learning.exceptions import exception, holding
from tflq.devices.learning.findings import Learned, State, coverage_of
from tflq.devices.learning.form import BASE, Form
from tflq.devices.learning.forms import Forms
from tflq.devices.learning.further import rearranged
from tflq.devices.learning.probes import draw, extreme
from tflq.devices.learning.requantizing import learned_requantizer
from tflq.devices.learning.splitting import doubting, splitting
from tflq.devices.learning.subjects import Subject
from tflq.devices.learning.tables import as_tables

#: A course of questions about one operator.
Course: TypeAlias = "Generator[list[Draft], list[Answer], Learned]"

#: Rounds of splitting questions, and of fresh ones.
_ROUNDS, _FRESH_ROUNDS = 6, 4
#: Forms of each kind that came near, from which the first form left is parted.
_RIVALS = 4
#: Rounds of other geometries, each of which chooses a form or confirms one.
_COVERED = 3


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


def _unanswered(subject: Subject, answers: Sequence[Answer]) -> Learned:
    reason = next((a.reason for a in answers if not a.refused), answers[0].reason)
    if reason.startswith("not asked"):
        return Learned(subject, State.OPEN, note=reason)
    state = State.REFUSED if all(answer.refused for answer in answers) else State.FAILED
    return Learned(subject, state, refused=sum(answer.refused for answer in answers), note=reason[:200])


@dataclass(slots=True)
class _Course(Candidates):
    """The questions about one operator, after the first."""

    def confirm(self) -> Course:
        """Split the forms left, confirm the first by fresh questions, and return what is known."""
        for turn in range(_FRESH_ROUNDS):
            yield from self._split()
            yield from self._doubt(turn)
            best = self.best() or self.narrow()
            if best is None:
                break
            drafts = self._fresh(turn)
            answers = yield drafts
            told = self.hold(answers)
            if not told:
                note = next((answer.reason for answer in answers), "")
                return self.conclude(State.OPEN, f"no fresh question was answered: {note}"[:200])
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
                self.left = [one for one in self.left[:COMPARED] if one is form or self.forms.fits(one, told)]
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
        found = replace(self.conclude(State.UNKNOWN, exception(wrong, right)), nearest=best)
        pairs = [self.forms.matches(best, answer) for answer in self.answers]
        return replace(found, share=(sum(same for same, _ in pairs), sum(elements for _, elements in pairs)))

    def _ask_to_cover(self, turn: int) -> Generator[list[Draft], list[Answer], list[Answer]]:
        """Ask every geometry and extreme, or drafts of all aims; another turn has other geometries and numbers."""
        drafts = [reaching(draft, BASE) for draft in self.subject.covering(self.effort.seed, turn)]
        told = self.hold((yield drafts)) if drafts else []
        self.covered += len(told)
        return told

    def _claimed(self, told: Sequence[Answer]) -> Learned:
        self.fresh, self.fresh_elements = self.fresh + len(told), self.fresh_elements + sum(a.elements for a in told)
        return replace(self.conclude(State.LEARNED, ""), coverage=coverage_of(told))

    def _fresh(self, turn: int) -> list[Draft]:
        """Return drafts of a draw that nothing was chosen by."""
        drafts = self.subject.drafts(self.effort.seed + 100 + turn, self.effort.fresh)
        if can_be_probed(self.subject) and self.subject.kind != "int16":
            rng = np.random.default_rng([self.effort.seed, 12, turn])
            op, kind = self.subject.op, self.subject.kind
            drafts += [probe.draft(op, kind) for probe in (*draw(rng, op, kind, 4), *extreme(rng, op, kind, 2))]
        return drafts

    def _fallback(self) -> Course:
        """Learn tables of codes where that is possible; else name the nearest form and its share."""
        tables = yield from as_tables(self.subject, self.answers)
        if tables is not None:
            return replace(tables, tried=self.tried)
        return self.name_nearest()
