"""Learn one operator: a first batch, the forms that reproduce it, questions that split them, and fresh ones."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tflq.devices.conformance.draft import Draft, samples_of
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.channels import repeating_channels
from tflq.devices.learning.exceptions import exception
from tflq.devices.learning.findings import Learned, State
from tflq.devices.learning.forms import Form, Forms, is_by_range, requantizing
from tflq.devices.learning.probes import drawn, extreme
from tflq.devices.learning.requantizing import Requantized, learned_requantizer
from tflq.devices.learning.subjects import KINDS, Subject
from tflq.devices.learning.tables import as_tables
from tflq.diagnosis.certainty import inside
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.numerics.requantizer import Requantizer

#: A course of questions about one operator.
Course: TypeAlias = "Generator[list[Draft], list[Answer], Learned]"

#: Operators whose accumulators can be chosen freely: their requantizers are learned by themselves.
CONTRACTIONS = ("CONV_2D", "FULLY_CONNECTED", "DEPTHWISE_CONV_2D")
#: Splitting drafts that are tried and asked in one round, rounds of them, rounds of fresh questions.
_POOL, _SPLITTING, _ROUNDS, _FRESH_ROUNDS = 16, 6, 3, 4
#: Fresh elements inside their type's range that a form needs where nothing can be asked.
_TELLING = 32
#: Drafts with random inputs that are searched, inputs of each, their bytes at most, and inputs that are asked.
_SEARCHED, _SAMPLES, _MOST_BYTES, _KEPT = 12, 100, 1 << 23, 8
#: Further draws of drafts that are looked at where forms by ranges and by scales are not split.
_DRAWS = 3
#: Points of an operator's own requantizer that are tried; forms whose shares are computed; forms that are split,
#: and those by ranges among them.
_OWN, _SCORED, _SPLIT, _RANGES = 4, 24, 10, 60
#: Answers that score forms; answers that all forms are compared with before the first that fits is sought.
_FIRST, _FEW = 3, 8
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
    learned = yield from course.confirmed()
    return replace(learned, refused=refused + learned.refused)


def chosen_by(subject: Subject, answers: Sequence[Answer], shared: Shared, effort: Effort) -> _Course:
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

    @property
    def subject(self) -> Subject:
        """The subject that is learned."""
        return self.forms.subject

    def choose(self, shared: Shared, mine: Requantized | None) -> None:
        """Find the forms that reproduce every answer: known ones, shared and own requantizers, then all others."""
        self.known = self.forms.known(self.answers[0].draft)
        points = shared.points(self.subject.kind) + ([] if mine is None else list(mine.points[1:_OWN]))
        changed = list(self.forms.changed(self.known, list(dict.fromkeys(points))))
        self.left = self._fitting([*self.known, *changed])
        if self.best() is None and mine is None and self.subject.kind in KINDS:
            self.left = self._fitting(self.forms.everything(self.known))

    def _fitting(self, forms: Iterable[Form]) -> list[Form]:
        """Return the forms that reproduce the first answers; `best` compares them with the others."""
        found = []
        for form in forms:
            self.tried += 1
            if self.forms.fits(form, self.answers[:_FEW]):
                found.append(form)
        return found

    def best(self) -> Form | None:
        """Return the first form left that reproduces every answer, and drop those before it."""
        while self.left and not self.forms.fits(self.left[0], self.answers[_FEW:]):
            del self.left[0]
        return self.left[0] if self.left else None

    def keep(self, answers: Sequence[Answer]) -> None:
        """Take new answers in, and drop the forms that do not reproduce them; large ones count for the first form."""
        new = [answer for answer in answers if answer.is_answered]
        self.answers += new
        small = [answer for answer in new if answer.elements <= _LARGE]
        first = [form for form in self.left[:1] if self.forms.fits(form, new)]
        self.left = first + [form for form in self.left[1:] if self.forms.fits(form, small)]

    def splitting(self, turn: int) -> list[Draft]:
        """Return drafts on which the forms left differ, those that split them best first."""
        # Forms by ranges differ from others once in a thousand elements: they are split from the first, too.
        # A model of a pointwise operator is small, so that all of them can be compared.
        fact = OPERATORS.get(self.subject.op)
        is_small = fact is not None and bool(fact.pointwise)
        ranges = [form for form in self.left if is_by_range(form)][: _RANGES if is_small else _SPLITTING]
        some = list(dict.fromkeys([*self.left[:_SPLIT], *ranges]))
        pool = self.subject.drafts(self.effort.seed + 1 + turn % 2, _POOL * (1 + turn // 2))
        chosen = self._parting(some, pool)
        if not chosen and is_small and any(is_by_range(form) != is_by_range(some[0]) for form in some):
            draws = (self.subject.drafts(self.effort.seed + 40 + _DRAWS * turn + n, _POOL) for n in range(_DRAWS))
            chosen = next(filter(None, (self._parting(some, drafts) for drafts in draws)), [])
        return chosen or self._searched(some, pool[:_SEARCHED], turn)

    def _parting(self, forms: list[Form], pool: Sequence[Draft]) -> list[Draft]:
        """Return the drafts of a pool that split forms best; none if all forms are equal on all of them."""
        groups = [forms]
        chosen: list[Draft] = []
        small = [d for d in pool if sum(value.nbytes for sample in d.samples for value in sample) <= _MOST_BYTES]
        keys = {id(draft): {form: self.forms.key(form, [draft]) for form in forms} for draft in small}
        while len(chosen) < _SPLITTING:
            splits = [(draft, _split(groups, keys[id(draft)])) for draft in small]
            draft, best = max(splits, key=lambda s: len(s[1]), default=(None, groups))
            if draft is None or len(best) == len(groups):
                break
            chosen.append(draft)
            groups = best
        return chosen

    def _searched(self, forms: Sequence[Form], pool: Sequence[Draft], turn: int) -> list[Draft]:
        """Return drafts with random inputs on which the first form differs from another, if some are found.

        Sums in floats and sums of integers differ once in many thousand elements.
        """
        rng = np.random.default_rng([self.effort.seed, 13, turn])
        chosen = []
        for draft in pool:
            many = replace(draft, samples=tuple(samples_of(rng, draft.inputs)[0] for _ in range(_SAMPLES)))
            if sum(value.nbytes for sample in many.samples for value in sample) > _MOST_BYTES:
                continue
            first, *others = (self.forms.by_sample(form, many) for form in forms)
            apart = sorted({at for other in others for at in np.flatnonzero(first != other).tolist()})
            if apart:
                chosen.append(replace(draft, samples=tuple(many.samples[at] for at in apart[:_KEPT])))
        return chosen[:_SPLITTING]

    def confirmed(self) -> Course:
        """Split the forms left, confirm the first by fresh questions, and return what is known."""
        for turn in range(_ROUNDS):
            if len(self.left) < 2:
                break
            chosen = self.splitting(turn)
            if not chosen:
                break
            self.keep((yield chosen))
        for turn in range(_FRESH_ROUNDS):
            if self.best() is None:
                break
            best = self.best()
            drafts = self._fresh(turn)
            answers = yield drafts
            told = [answer for answer in answers if answer.is_answered]
            if not told:
                note = next((answer.reason for answer in answers), "")
                return self._finding(State.OPEN, f"no fresh question was answered: {note}"[:200])
            self.keep(answers)
            if self.left and self.left[0] == best:
                self.fresh, self.fresh_elements = len(told), sum(answer.elements for answer in told)
                return (yield from self._covered(best))
        return (yield from self._fallback())

    def _covered(self, best: Form) -> Course:
        """Claim a form if it reproduces every geometry and extreme; else state for what it holds."""
        drafts = self.subject.covering(self.effort.seed)
        if not drafts:
            return self._finding(State.LEARNED, "")
        told = [answer for answer in (yield drafts) if answer.is_answered]
        self.covered = len(told)
        wrong = [answer for answer in told if not self.forms.fits(best, [answer])]
        right = [answer for answer in told if answer not in wrong]
        self.answers += told
        if wrong:
            found = replace(self._finding(State.UNKNOWN, exception(wrong, right)), nearest=best)
            pairs = [self.forms.matches(best, answer) for answer in self.answers]
            return replace(found, share=(sum(same for same, _ in pairs), sum(elements for _, elements in pairs)))
        self.left = [best, *(form for form in self.left[1:] if self.forms.fits(form, told))]
        self.fresh, self.fresh_elements = self.fresh + len(told), self.fresh_elements + sum(a.elements for a in told)
        return self._finding(State.LEARNED, "")

    def confirmed_by(self, answers: Sequence[Answer]) -> Learned:
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
            drafts += [probe.draft(op, kind) for probe in (*drawn(rng, op, kind, 4), *extreme(rng, op, kind, 2))]
        return drafts

    def _finding(self, state: State, note: str) -> Learned:
        is_learned = state is State.LEARNED
        return Learned(
            self.subject,
            state,
            form=self.left[0] if is_learned else None,
            also=tuple(self._beside()) if is_learned else (),
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
        few = self.answers[: _FIRST * 2]
        scored = []
        for form in (*self.known[:_SCORED], requantizing(Requantizer())):
            same, elements = map(sum, zip(*(self.forms.matches(form, answer) for answer in few), strict=True))
            scored.append((same / max(elements, 1), form))
        best = max(scored, key=lambda s: s[0])[1]
        pairs = [self.forms.matches(best, answer) for answer in self.answers]
        share = sum(same for same, _ in pairs), sum(elements for _, elements in pairs)
        note = repeating_channels(self.forms, best, self.answers)
        return replace(self._finding(State.UNKNOWN, note), nearest=best, share=share)


def _telling(answer: Answer) -> int:
    """Return the number of elements that are neither the lowest nor the highest of their type."""
    return sum(inside(output) for sample in answer.outputs for output in sample)


def _split(groups: Sequence[list[Form]], keys: dict[Form, bytes]) -> list[list[Form]]:
    found = []
    for group in groups:
        parts: dict[bytes, list[Form]] = {}
        for form in group:
            parts.setdefault(keys[form], []).append(form)
        found += list(parts.values())
    return found
