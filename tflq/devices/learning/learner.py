"""Learn a device: the courses of all its operators side by side, so that each round is one call of the target.

Questions on which forms that reproduce every answer so far differ.

Tables of codes: the fallback for operators of one 8-bit input whose form is not known.

Learn one operator: a first batch, the forms that reproduce it, questions that split them, and fresh ones.

Learn from dumps alone: no questions, only what a device computed of whole models.

Each operator of a dump is an answer to a question that was not chosen. Half of the answers of an operator and its types
select the forms, the other half confirms them, so that at least two answers are needed.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, TypeAlias

import numpy as np

from tflq.comparison.evidence.dumps import Dump
from tflq.devices.grids.geometric import choice_of
from tflq.devices.learning.asking import Asker, DeviceAnswer, KeptAnswers, Tally
from tflq.devices.learning.candidates import (
    COMPARED,
    CONTRACTIONS,
    Candidates,
    Effort,
    SharedQuestions,
    choose_by,
    exception,
    holding,
)
from tflq.devices.learning.findings import Learned, LearnFindings, LearnState, coverage_of
from tflq.devices.learning.forms import BASE, Form, Forms, is_by_range, rearranged
from tflq.devices.learning.questions import LearnSubject, draw, extreme
from tflq.devices.learning.space import learned_requantizer
from tflq.devices.suites.draft import KINDS, Draft, samples_of
from tflq.devices.suites.jobs import UNSTATED
from tflq.devices.suites.make import reaching
from tflq.devices.suites.target import Target
from tflq.diagnosis.localization import operator_alone
from tflq.engine.api.many import Part
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.profiles import by_name
from tflq.errors import RuntimeFailed, RuntimeMissing, TflqError
from tflq.interrupts import Progress, silent
from tflq.model.flatbuf import write
from tflq.model.ir import Model, TensorType, view
from tflq.typing import Array

#: Drafts that are tried and asked in one round.
_POOL, _SPLITTING = 16, 6
#: Forms that are split: the first ones and others at equal distances; and those by ranges among them.
_SPLIT, _RANGES = 10, 60
#: Drafts with random inputs that are searched, inputs of each, their bytes at most, and inputs that are asked.
_SEARCHED, _SAMPLES, _MOST_BYTES, _KEPT = 12, 100, 1 << 23, 8
#: Further draws of drafts that are looked at where forms by ranges are not split.
_DRAWS = 6
#: Drafts of each kind on which a form is doubted, and random inputs of each.
_DOUBTED, _INPUTS = 8, 40


def splitting(forms: Forms, left: Sequence[Form], seed: int, turn: int) -> list[Draft]:
    """Return drafts on which the forms left differ, those that split them best first."""
    # Forms by ranges differ from others once in a thousand elements: they are split from the first, too.
    # A model of a pointwise operator is small, so that all of them can be compared.
    fact = OPERATORS.get(forms.subject.op)
    is_small = fact is not None and bool(fact.pointwise)
    ranges = [form for form in left if is_by_range(form)][: _RANGES if is_small else _SPLITTING]
    spread = left[_SPLIT :: max(1, len(left) // _SPLIT)]
    some = list(dict.fromkeys([*left[:_SPLIT], *spread, *ranges]))
    pool = forms.subject.drafts(seed + 1 + turn % 2, _POOL * (1 + turn // 2 % 2))
    chosen = _parting(forms, some, pool)
    if not chosen and is_small and ranges:
        draws = (forms.subject.drafts(seed + 40 + _DRAWS * turn + n, _POOL) for n in range(_DRAWS))
        chosen = next(filter(None, (_parting(forms, some, drafts) for drafts in draws)), [])
    return chosen or _search(forms, some, pool[:_SEARCHED], [seed, 13, turn])


def doubting(forms: Forms, best: Form, rivals: Sequence[Form], seed: int, turn: int) -> list[Draft]:
    """Return drafts on which a form differs from forms that came near and are excluded.

    A device that computes as one of them in some models only shows it there, and seldom elsewhere.
    """
    some = [best, *rivals]
    pool = forms.subject.drafts(seed + 70 + turn, _DOUBTED)
    covering = [d for d in forms.subject.covering(seed + 70, turn + 1) if choice_of(d.aim) is None]  # no geometries
    largest = sorted(covering, key=lambda draft: -draft.constants)[:_DOUBTED]
    return _search(forms, some, [*largest, *pool], [seed, 14, turn], _INPUTS)


def _parting(forms: Forms, some: list[Form], pool: Sequence[Draft]) -> list[Draft]:
    """Return the drafts of a pool that split forms best; none if all forms are equal on all of them."""
    groups = [some]
    chosen: list[Draft] = []
    small = [d for d in pool if sum(value.nbytes for sample in d.samples for value in sample) <= _MOST_BYTES]
    keys = {id(draft): {form: forms.key(form, [draft]) for form in some} for draft in small}
    while len(chosen) < _SPLITTING:
        splits = [(draft, _split(groups, keys[id(draft)])) for draft in small]
        draft, best = max(splits, key=lambda s: len(s[1]), default=(None, groups))
        if draft is None or len(best) == len(groups):
            break
        chosen.append(draft)
        groups = best
    return chosen


def _search(
    forms: Forms, some: Sequence[Form], pool: Sequence[Draft], seed: list[int], count: int = _SAMPLES
) -> list[Draft]:
    """Return drafts with some of `count` random inputs on which the first form differs from another.

    Sums in floats and sums of integers differ once in many thousand elements.
    """
    rng = np.random.default_rng(seed)
    chosen = []
    for draft in pool:
        many = replace(draft, samples=tuple(samples_of(rng, draft.inputs)[0] for _ in range(count)))
        if sum(value.nbytes for sample in many.samples for value in sample) > _MOST_BYTES:
            continue
        first, *others = (forms.by_sample(form, many) for form in some)
        apart = sorted({at for other in others for at in np.flatnonzero(first != other).tolist()})
        if apart:
            chosen.append(replace(draft, samples=tuple(many.samples[at] for at in apart[:_KEPT])))
        if len(chosen) == _SPLITTING:
            break
    return chosen


def _split(groups: Sequence[list[Form]], keys: dict[Form, bytes]) -> list[list[Form]]:
    found = []
    for group in groups:
        parts: dict[bytes, list[Form]] = {}
        for form in group:
            parts.setdefault(keys[form], []).append(form)
        found += list(parts.values())
    return found


_EIGHT = ("int8", "uint8")


def as_tables(
    subject: LearnSubject, answers: Sequence[DeviceAnswer]
) -> Generator[list[Draft], list[DeviceAnswer], Learned | None]:
    """Return the tables of all answers that hold every code, confirmed with the codes in another order.

    Returns None for operators that are not functions of one 8-bit code.
    """
    fact = OPERATORS.get(subject.op)
    words = subject.types.split(" -> ")
    if fact is None or not fact.pointwise or words[0] not in _EIGHT or words[-1] not in _EIGHT:
        return None
    tables = [(answer, table) for answer in answers if (table := _table(answer)) is not None]
    if not tables:
        return None
    rng = np.random.default_rng(7)
    shuffled = [replace(a.draft, samples=((rng.permutation(a.draft.samples[0][0]),),)) for a, _ in tables]
    fresh = yield shuffled
    told = [(answer, table) for answer, (_, table) in zip(fresh, tables, strict=True) if answer.is_answered]
    elements = sum(answer.elements for answer, _ in told)
    exact = sum(_same(answer, table) for answer, table in told)
    if not told or exact < elements:
        return None
    return Learned(
        subject,
        LearnState.TABLE,
        asked=len(answers),
        fresh=len(told),
        fresh_elements=elements,
        fresh_exact=exact,
        tables=tuple(_stated(answer.draft, table) for answer, table in tables),
        note=f"only for the {len(tables)} pairs of scales that were asked; other scales are refused",
    )


def _table(answer: DeviceAnswer) -> Array | None:
    """Return the codes for every input code, the lowest first; None if some are missing or contradict each other."""
    if len(answer.draft.samples[0]) != 1:
        return None
    given = np.concatenate([sample[0].reshape(-1) for sample in answer.draft.samples])
    got = np.concatenate([outputs[0].reshape(-1) for outputs in answer.outputs])
    if given.dtype.itemsize != 1 or got.dtype.itemsize != 1 or given.shape != got.shape:
        return None
    low = int(np.iinfo(given.dtype).min)
    at = given.astype(np.int64) - low
    table = np.zeros(256, got.dtype)
    table[at] = got
    is_whole = len(np.unique(at)) == 256 and np.array_equal(table[at], got)
    return table if is_whole else None


def _same(answer: DeviceAnswer, table: Array) -> int:
    given = answer.draft.samples[0][0]
    at = given.astype(np.int64) - int(np.iinfo(given.dtype).min)
    return int(np.count_nonzero(table[at] == answer.outputs[0][0]))


def _stated(draft: Draft, table: Array) -> dict[str, Any]:
    """Return a table as a profile's file states it."""
    x, y = draft.inputs[0], draft.outputs[0]
    assert x is not None  # an operator of one input
    stated: dict[str, Any] = {
        "input": [float(np.float32(x.scale)), int(x.zero_point)],
        "output": [float(np.float32(y.scale)), int(y.zero_point)],
    }
    numbers = {} if draft.options is None else {k: v for k, v in draft.options[1].items() if v}
    if numbers:
        stated["options"] = numbers
    return {**stated, "codes": table.tolist()}


#: A course of questions about one operator.
Course: TypeAlias = "Generator[list[Draft], list[DeviceAnswer], Learned]"

#: Rounds of splitting questions, and of fresh ones.
_ROUNDS, _FRESH_ROUNDS = 6, 4
#: Forms of each kind that came near, from which the first form left is parted.
_RIVALS = 4
#: Rounds of other geometries, each of which chooses a form or confirms one.
_COVERED = 3


def can_be_probed(subject: LearnSubject) -> bool:
    """Return whether a subject's accumulators can be chosen freely."""
    return subject.op in CONTRACTIONS and subject.types == f"{subject.kind} {subject.kind} int32 -> {subject.kind}"


def learned_operator(subject: LearnSubject, shared: SharedQuestions, effort: Effort) -> Course:
    """Ask about a subject until one form is left and confirmed, or none is."""
    forms = Forms(subject)
    first = subject.drafts(effort.seed, effort.first)
    answers = yield [*first, first[0]]
    *once, again = answers
    seen = [answer for answer in once if answer.is_answered]
    refused = sum(answer.refused for answer in once)
    # A device that refuses these may take other options, shapes or types of scales.
    if not seen and all(answer.refused and answer.reason != UNSTATED for answer in once):
        once = yield subject.covering(effort.seed)
        seen = [answer for answer in once if answer.is_answered]
        again = once[0]
    if not seen:
        return _unanswered(subject, once)
    if once[0].is_answered and not (again.is_answered and once[0].same(again)):
        return Learned(subject, LearnState.UNSTABLE, asked=len(seen) + 1, note="equal questions had different answers")
    mine = shared.of(subject)
    if mine is None and can_be_probed(subject) and subject.kind != "int16":
        mine = yield from learned_requantizer(subject.op, subject.kind, effort.seed)
        shared.requantizers[subject.op, subject.kind] = mine
    sharp = [] if mine is None else list(mine.asked)
    course = _Course(forms, sorted(seen, key=lambda a: a.elements) + sharp, effort)
    course.choose(shared, mine)
    learned = yield from course.confirm()
    return replace(learned, refused=refused + learned.refused)


def _unanswered(subject: LearnSubject, answers: Sequence[DeviceAnswer]) -> Learned:
    reason = next((a.reason for a in answers if not a.refused), answers[0].reason)
    if reason.startswith("not asked"):
        return Learned(subject, LearnState.OPEN, note=reason)
    state = LearnState.REFUSED if all(answer.refused for answer in answers) else LearnState.FAILED
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
                return self.conclude(LearnState.OPEN, f"no fresh question was answered: {note}"[:200])
            self.keep(answers)
            if self.left and self.left[0] == best:
                self.fresh, self.fresh_elements = len(told), sum(answer.elements for answer in told)
                return (yield from self._cover(best))
        return (yield from self._fallback())

    def _split(self) -> Generator[list[Draft], list[DeviceAnswer], None]:
        """Ask questions on which the forms left differ, until no more are found."""
        for _ in range(_ROUNDS):
            if self.best() is None or len(self.left) < 2:
                break
            chosen = splitting(self.forms, self.left, self.effort.seed, self.turns)
            self.turns += 1
            if not chosen:
                break
            self.keep((yield chosen))

    def _doubt(self, turn: int) -> Generator[list[Draft], list[DeviceAnswer], None]:
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
        first: tuple[list[DeviceAnswer], list[DeviceAnswer]] | None = None
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

    def _hold_in_part(self, best: Form, wrong: Sequence[DeviceAnswer], right: Sequence[DeviceAnswer]) -> Course:
        """Claim a form for the geometries that it reproduces if others confirm it; else state what is known of it."""
        condition = None if self.only else holding(self.forms, wrong, right)
        if condition is not None:
            form = best.changed("only", **condition)
            told = yield from self._ask_to_cover(_COVERED)
            told = [answer for answer in told if self.forms.results(form, answer.draft) is not None]
            if told and self.forms.fits(form, told):
                self.left = [form]
                return replace(self._claimed(told), state=LearnState.PARTLY, also=(), note=exception(wrong, right))
        found = replace(self.conclude(LearnState.UNKNOWN, exception(wrong, right)), nearest=best)
        pairs = [self.forms.matches(best, answer) for answer in self.answers]
        return replace(found, share=(sum(same for same, _ in pairs), sum(elements for _, elements in pairs)))

    def _ask_to_cover(self, turn: int) -> Generator[list[Draft], list[DeviceAnswer], list[DeviceAnswer]]:
        """Ask every geometry and extreme, or drafts of all aims; another turn has other geometries and numbers."""
        drafts = [reaching(draft, BASE) for draft in self.subject.covering(self.effort.seed, turn)]
        told = self.hold((yield drafts)) if drafts else []
        self.covered += len(told)
        return told

    def _claimed(self, told: Sequence[DeviceAnswer]) -> Learned:
        self.fresh, self.fresh_elements = self.fresh + len(told), self.fresh_elements + sum(a.elements for a in told)
        return replace(self.conclude(LearnState.LEARNED, ""), coverage=coverage_of(told))

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


#: Rounds without any answer after which the target is taken for broken.
_SILENT = 3


@dataclass(slots=True)
class _Running:
    """A course of questions, and the batch that it waits for."""

    name: Any
    course: Generator[list[Draft], list[DeviceAnswer], Any]
    batch: list[Draft] = field(default_factory=list)
    result: Any = None
    is_done: bool = False

    def send(self, answers: list[DeviceAnswer] | None) -> None:
        """Continue the course up to its next batch or its end."""
        try:
            self.batch = next(self.course) if answers is None else self.course.send(answers)
        except StopIteration as end:
            self.result, self.batch, self.is_done = end.value, [], True


def learn(
    target: Target,
    subjects: Sequence[LearnSubject],
    effort: Effort | None = None,
    *,
    most: int = 100_000,
    progress: Progress = silent,
    kept: KeptAnswers | None = None,
) -> LearnFindings:
    """Learn some operators of a target. Ctrl-C ends it with what is known by then.

    Args:
        target: The device.
        subjects: The operators with their types.
        effort: Numbers of models, and the seed.
        most: The number of models after which nothing more is asked.
        progress: Called before each call of the target with what is learned, operators that are done, and all.
        kept: Answers of an earlier run, which are not asked again, and the place of new ones.

    Raises:
        RuntimeMissing: There is no such program.
        RuntimeFailed: The program cannot be started.
    """
    effort = effort or Effort()
    asker, shared = Asker(target, most, progress, kept=kept), SharedQuestions()
    started, reason = time.monotonic(), ""
    # Requantizers first: all other operators are asked with them in mind.
    contractions = [s for s in subjects if can_be_probed(s) and s.kind != "int16" and s.op != "DEPTHWISE_CONV_2D"]
    first = [_Running((s.op, s.kind), learned_requantizer(s.op, s.kind, effort.seed)) for s in contractions]
    second = [_Running(s, learned_operator(s, shared, effort)) for s in subjects]
    try:
        _rounds(asker, first, "requantizers")
        for one in first:
            shared.requantizers[one.name] = one.result
        _rounds(asker, second, "operators")
    except KeyboardInterrupt:
        reason = "interrupted"
    except Exception as error:  # what is learned by now is kept
        if not asker.tally.elements:
            raise
        is_targets = isinstance(error, (RuntimeFailed, RuntimeMissing))
        reason = str(error) if is_targets else f"an error in tflq: {type(error).__name__}: {error}"
    operators = jointly([one.result if one.is_done else Learned(one.name, note=reason) for one in second])
    return LearnFindings(
        target.name,
        _version(target),
        date.today().isoformat(),
        operators,
        tuple(shared.requantizers.values()),
        asker.tally,
        time.monotonic() - started,
        any(one.state is LearnState.OPEN for one in operators),
        reason,
    )


def _rounds(asker: Asker, courses: Sequence[_Running], what: str) -> None:
    """Run courses side by side to their ends."""
    for one in courses:
        one.send(None)
    silent = 0
    while waiting := [one for one in courses if not one.is_done]:
        drafts = [draft for one in waiting for draft in one.batch]
        done = len(courses) - len(waiting)
        asker.progress(f"{what}: asking {len(drafts)} models", done, len(courses))
        answers = asker.ask(drafts)
        silent = 0 if any(a.is_answered or a.refused for a in answers) else silent + 1
        if silent == _SILENT:
            raise RuntimeFailed(asker.target.name, f"no answers in {_SILENT} rounds: {answers[0].reason}"[:200])
        at = 0
        for one in waiting:
            asker.progress(f"{what}: comparing {_said(one.name)}", done, len(courses))
            mine = answers[at : at + len(one.batch)]
            at += len(one.batch)
            one.send(mine)
            done += one.is_done


def _said(name: LearnSubject | tuple[str, str]) -> str:
    """Return an operator and its types in words."""
    return " ".join(name) if isinstance(name, tuple) else str(name)


def jointly(operators: Sequence[Learned]) -> tuple[Learned, ...]:
    """Return the findings with as few profiles named as possible: of forms that fit, those of the commonest profile.

    Every form that is left of an operator reproduces all its answers, so that a choice among them is free.
    """
    left = {id(one): set(one.plain) for one in operators if one.plain}
    chosen: dict[int, str] = {}
    while left:
        counts: dict[str, int] = {}
        for one in operators:
            for name in dict.fromkeys(one.plain) if id(one) in left else ():
                counts[name] = counts.get(name, 0) + 1
        best = max(counts, key=lambda name: counts[name])
        for key in [key for key, names in left.items() if best in names]:
            chosen[key] = best
            del left[key]
    return tuple(_name(one, chosen[id(one)]) if id(one) in chosen else one for one in operators)


def _name(one: Learned, profile: str) -> Learned:
    """Return the finding with a profile as its form; the others stay beside it."""
    forms = [other for other in (one.form, *one.also) if other is not None]
    own = next(
        form for form in forms if not form.kind and not form.more and profile in one.alike.get(form.like, [form.like])
    )
    return replace(one, form=Form(profile), also=tuple(form for form in forms if form != own))


def _version(target: Target) -> str:
    """Return the version line of a target, if it is known."""
    identity = target.identity()
    return str(identity.get("version") or "")


#: The profile under which tensors that a dump lacks are computed.
_BASE = "litert-ref"


def learn_from_dumps(sources: Sequence[tuple[Model, Sequence[Dump]]], name: str) -> LearnFindings:
    """Learn operators from dumps of models; `name` is the source that the profile names."""
    started = time.monotonic()
    answers: dict[LearnSubject, list[DeviceAnswer]] = {}
    for model, dumps in sources:
        for dump in dumps:
            for subject, answer in _answers(model, dump):
                answers.setdefault(subject, []).append(answer)
    shared, effort = SharedQuestions(), Effort()
    operators = jointly([_learn(subject, found, shared, effort) for subject, found in answers.items()])
    tally = Tally(samples=sum(len(found) for found in answers.values()))
    tally.elements = sum(answer.elements for found in answers.values() for answer in found)
    spent = time.monotonic() - started
    return LearnFindings(name, "", date.today().isoformat(), operators, (), tally, spent)


def _answers(model: Model, dump: Dump) -> list[tuple[LearnSubject, DeviceAnswer]]:
    found = []
    base = by_name(_BASE)
    for op in view(model).ops:
        try:
            part = operator_alone(model, dump, op.index, base)
            answer = answer_of([part])
        except TflqError:
            continue
        if answer is not None:
            found.append(answer)
    return found


def answer_of(parts: Sequence[Part]) -> tuple[LearnSubject, DeviceAnswer] | None:
    """Return an operator on one dump's inputs or several as a question with its answer; None if it is not of codes."""
    first = parts[0]
    graph, op = first.graph, first.op
    types = [None if t < 0 else graph.tensors[t].type for t in op.inputs]
    results = [graph.tensors[t].type for t in op.outputs]
    if not all(t is None or isinstance(t, TensorType) for t in (*types, *results)):
        return None
    left = " ".join("none" if t is None else t.label for t in types if t is None or isinstance(t, TensorType))
    right = " ".join(t.label for t in results if isinstance(t, TensorType))
    outputs = [tuple(part.got.get(part.tensors[t]) for t in graph.outputs) for part in parts]
    given = tuple(tuple(part.inputs[t] for t in graph.inputs) for part in parts)
    got = tuple(tuple(value for value in values if value is not None) for values in outputs)
    if not set(f"{left} {right}".split()) & set(KINDS) or any(
        len(a) < len(b) for a, b in zip(got, outputs, strict=True)
    ):
        return None
    draft = Draft(op.name, "a dump", (), (), given, file=write(first.model))
    return LearnSubject(op.name, f"{left} -> {right}"), DeviceAnswer(draft, got)


def _learn(subject: LearnSubject, answers: Sequence[DeviceAnswer], shared: SharedQuestions, effort: Effort) -> Learned:
    first, fresh = list(answers[::2]), list(answers[1::2])
    course = choose_by(subject, first, shared, effort)
    return course.confirm_by(fresh)
