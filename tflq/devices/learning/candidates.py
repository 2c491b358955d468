"""Answers of a target about one operator, and the forms of the grammar that reproduce them, in order of preference.

Channels in which a form differs from a device, if these repeat: lanes and tails of vector code.

Find what the models have in common that a form does not reproduce, and those that it reproduces lack.

Nothing is asked here: `learner` asks, and takes new answers in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from tflq.devices.grids.contracting import BEYOND
from tflq.devices.grids.geometric import choice_of
from tflq.devices.learning.asking import DeviceAnswer
from tflq.devices.learning.findings import Learned, LearnState
from tflq.devices.learning.forms import BASE, Form, Forms, further, requantizing
from tflq.devices.learning.questions import AIM, LearnSubject
from tflq.devices.learning.space import Requantized
from tflq.devices.suites.draft import KINDS
from tflq.diagnosis.certainty import inside
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.families.reals import NAMES
from tflq.engine.numerics.requantizer import Requantizer
from tflq.engine.profiles import by_name
from tflq.errors import TflqError


def repeating_channels(forms: Forms, form: Form, answers: Sequence[DeviceAnswer]) -> str:
    """Return a sentence on the channels in which a form differs from the device, if these repeat."""
    wrong: set[int] = set()
    right: set[int] = set()
    for answer in answers:
        found = forms.results(form, answer.draft)
        for outputs, got in zip(found or (), answer.outputs, strict=False):
            for one, other in zip(outputs, got, strict=True):
                if one.shape == other.shape and one.ndim > 1:
                    differs = (one != other).reshape(-1, one.shape[-1]).any(axis=0)
                    wrong |= set(np.flatnonzero(differs).tolist())
                    right |= set(range(one.shape[-1])) - set(np.flatnonzero(differs).tolist())
    only = wrong
    for modulus in (2, 4, 8, 16):
        classes = {channel % modulus for channel in only}
        if only and len(classes) == 1 and right - only and max(right | only) >= 2 * modulus:
            return f"differs only in channels that are {classes.pop()} modulo {modulus}"
    return ""


#: The `only` of a profile: names of options and extents, and lists of their values.
Holds: TypeAlias = "Mapping[str, tuple[Any, ...]]"
#: Geometries that a part of an answer needs at least, and of what share of all.
_LEAST, _SHARE = 12, 0.25
#: Options that devices lack or take otherwise than the rest, with their usual values.
_USUAL: tuple[Mapping[str, str], ...] = (
    {"dilation_h": "1", "dilation_w": "1"},
    {"padding": "VALID"},
    {"padding": "SAME"},
    {"stride_h": "1", "stride_w": "1"},
    {"activation": "NONE"},
    {"groups": "1"},
)


def options_of(forms: Forms, answer: DeviceAnswer) -> dict[str, str]:
    """Return the options and extents of an answer's model that may limit a row, by name."""
    found: dict[str, str] = {}
    try:
        node = make_plan(forms.model(answer.draft), by_name(BASE)).steps[0].node
    except TflqError:
        return found
    for name, read in NAMES.items():
        with suppress(KeyError, IndexError, TflqError):
            found[name] = str(read(node))
    return found


def is_held(forms: Forms, answer: DeviceAnswer, holds: Holds) -> bool:
    """Return whether an answer's model is one for which a form holds."""
    own = options_of(forms, answer)
    return tuple(own.get(name, "") for name in holds["names"]) in holds["values"]


def usual_parts(forms: Forms, answers: Sequence[DeviceAnswer]) -> Iterator[tuple[tuple[str, ...], list[DeviceAnswer]]]:
    """Yield names of options, and the answers with their usual values, if others have other values."""
    options = [options_of(forms, answer) for answer in answers]
    for usual in _USUAL:
        some = [a for a, own in zip(answers, options, strict=True) if usual.items() <= own.items()]
        if _LEAST <= len(some) < len(answers):
            yield tuple(usual), some


def _is_of_values(answer: DeviceAnswer) -> bool:
    """Return whether a model asks about values rather than options: chosen accumulators, and extreme sums."""
    return answer.draft.aim.endswith(AIM) or answer.draft.aim.startswith(BEYOND)


def holding(
    forms: Forms, wrong: Sequence[DeviceAnswer], right: Sequence[DeviceAnswer], names: tuple[str, ...] = ()
) -> Holds | None:
    """Return for which models a form holds, as a profile states it; None if no option or two part them.

    Values that no right answer has are not among them. Without `names`, the only options that may part them, all wrong
    answers have to be of geometries.
    """
    if any(map(_is_of_values, wrong)) or (not names and any(choice_of(one.draft.aim) is None for one in wrong)):
        return None
    bad, good = ([options_of(forms, answer) for answer in some] for some in (wrong, right))
    options = (one for one in _options(bad, good) if not names or one == names)
    for names in options if len(good) >= max(_LEAST, _SHARE * (len(wrong) + len(right))) else ():
        return {"names": names, "values": tuple(sorted({tuple(own.get(name, "") for name in names) for own in good}))}
    return None


def exception(wrong: Sequence[DeviceAnswer], right: Sequence[DeviceAnswer]) -> str:
    """Return for which models a form does not hold: by one option, or by two; else by number and an example."""
    count = f"({len(wrong)} of {len(wrong) + len(right)} models of other geometries and extreme sums)"
    choices = [[choice_of(answer.draft.aim) for answer in some] for some in (wrong, right)]
    bad, good = ([choice for choice in some if choice is not None] for some in choices)
    if len(bad) < len(wrong):
        beyond = [answer.draft.aim for answer in wrong if choice_of(answer.draft.aim) is None]
        if not bad:
            return f"except for {', '.join(dict.fromkeys(beyond))} {count}"
        return f"except in some models, the first {beyond[0]} {count}"
    for option in _options(bad, good):
        values = {tuple(choice[name] for name in option) for choice in bad}
        listed = " or ".join(" and ".join(map(" ".join, zip(option, v, strict=True))) for v in sorted(values))
        return f"except with {listed} {count}"
    return f"except in some geometries, the first: {', '.join(map(' '.join, bad[0].items()))} {count}"


def _options(bad: Sequence[Mapping[str, str]], good: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield the options, one or two, whose values in one list do not occur in the other."""
    names = list(bad[0]) if bad else []
    for option in (*((name,) for name in names), *combinations(names, 2)):
        values = [{tuple(c.get(name, "") for name in option) for c in some} for some in (bad, good)]
        if values[0].isdisjoint(values[1]):
            yield option


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
class SharedQuestions:
    """Requantizers that operators of one device share, by operator and type."""

    requantizers: dict[tuple[str, str], Requantized] = field(default_factory=dict)

    def points(self, kind: str) -> list[Requantizer]:
        """Return the simplest points that were learned, those of the same type first."""
        found = [
            r.points[0] for (_, k), r in sorted(self.requantizers.items(), key=lambda i: i[0][1] != kind) if r.points
        ]
        return list(dict.fromkeys(found))

    def of(self, subject: LearnSubject) -> Requantized | None:
        """Return what is known of a subject's own requantizer."""
        return self.requantizers.get((subject.op, subject.kind))


@dataclass(slots=True)
class Candidates:
    """Answers so far, and the forms that reproduce them in order of preference."""

    forms: Forms
    answers: list[DeviceAnswer]
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
    def subject(self) -> LearnSubject:
        """The subject that is learned."""
        return self.forms.subject

    def choose(self, shared: SharedQuestions, mine: Requantized | None) -> None:
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

    def hold(self, answers: Sequence[DeviceAnswer]) -> list[DeviceAnswer]:
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

    def _telling_first(self) -> list[DeviceAnswer]:
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

    def keep(self, answers: Sequence[DeviceAnswer]) -> None:
        """Take new answers in, and drop the forms that do not reproduce them; large ones count for the first form."""
        new = self.hold(answers)
        self.answers += new
        small = [answer for answer in new if answer.elements <= _LARGE]
        first = [form for form in self.left[:1] if self.forms.fits(form, new)]
        self.left = first + [form for form in self.left[1:] if self.forms.fits(form, small)]

    def confirm_by(self, answers: Sequence[DeviceAnswer]) -> Learned:
        """Return what is known after answers that selected nothing; nothing can be asked."""
        best = self.best()
        self.keep(answers)
        if best is not None and self.left and self.left[0] == best and sum(map(_telling, answers)) >= _TELLING:
            self.fresh, self.fresh_elements = len(answers), sum(answer.elements for answer in answers)
            return self.conclude(LearnState.LEARNED, "")
        best = self.best()
        if best is None:
            return self.name_nearest()
        note = "too few answers are left to confirm it"
        return replace(self.conclude(LearnState.UNKNOWN, note), nearest=best, share=self.share())

    def share(self) -> tuple[int, int]:
        """Return how many elements the first form left reproduces, and of how many."""
        best = self.best()
        pairs = [] if best is None else [self.forms.matches(best, answer) for answer in self.answers]
        return sum(same for same, _ in pairs), sum(elements for _, elements in pairs)

    def conclude(self, state: LearnState, note: str) -> Learned:
        """Return what is known, with the first form left if it is learned."""
        is_learned = state is LearnState.LEARNED
        form = self.left[0] if is_learned else None
        if form is not None and self.only is not None:
            state, form = LearnState.PARTLY, form.changed("only", **self.only)
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
        return replace(self.conclude(LearnState.UNKNOWN, note), nearest=best, share=share)


def choose_by(
    subject: LearnSubject, answers: Sequence[DeviceAnswer], shared: SharedQuestions, effort: Effort
) -> Candidates:
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


def _telling(answer: DeviceAnswer) -> int:
    """Return the number of elements that are neither the lowest nor the highest of their type."""
    return sum(inside(output) for sample in answer.outputs for output in sample)
