"""The race of a recipe's candidates: all begin on few samples, and significantly worse ones are dropped.

1. *Heat.* Only the ranges of all candidates are built, without their refinements. They are judged by the first quarter
   of the held-back samples. If ranges lose more than HOPELESS times the best's loss, all candidates that refine them
   are dropped: refinement wins back a factor of two, seldom three. Candidates without refinement are dropped if they
   lose more than BEHIND times as much.
2. *First turn.* The remaining candidates are refined on all samples that are not held back, and judged by all that are.
3. *Other turns.* The best FINALISTS are fitted to other quarters and judged by the one held back in that turn. After
   every turn, significantly worse candidates are dropped.
4. *Proof.* The best is fitted once more, and judged by a quarter that has judged no candidate: the best of many figures
   on the same samples is partly luck.

A candidate is dropped only if it is significantly worse: the differences to the best are paired by sample, and must
exceed three standard errors of their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from tflq.errors import CalibrationError, ModelError, TflqError, UndefinedResultError, UnsupportedError
from tflq.progress import Progress
from tflq.quantization.build.build import Built, build, foreseen, share_parts
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import FEW, TURNS, parted
from tflq.quantization.judge.journal import Journal, entry_key, entry_of, rank_from
from tflq.quantization.judge.scoring import expect_scores, judged
from tflq.quantization.judge.selection import Left, Ranked, Score, is_far_behind, join, ranked
from tflq.quantization.processes import each
from tflq.quantization.progress import STEPS, part_of
from tflq.quantization.recipe.recipe import Methods
from tflq.quantization.recipe.refining import Refining

#: The number of candidates that are judged in more than one turn.
FINALISTS = 6
#: The heat is judged by at least this many samples, and by one of this many that are held back.
HEAT, SHARE = 8, 4
#: Multiples of the best's losses: for ranges that no refinement saves, and for candidates without refinement.
HOPELESS, BEHIND = 4.0, 1.1


@dataclass(slots=True, eq=False)
class Leader:
    """The best candidate that the first turn has built so far, and its model; None before there is one."""

    ranked: Ranked | None = None
    built: Built | None = None

    def note(self, ranked: Ranked, built: Built | None) -> None:
        """Replace the leader if this candidate lost less; without a model if it is not at hand."""
        before = None if self.ranked is None else self.ranked.score
        if ranked.score is not None and (before is None or ranked.score.losses.mean() < before.losses.mean()):
            self.ranked, self.built = ranked, built


def choose(task: Task, leader: Leader | None = None, journal: Journal | None = None) -> tuple[Ranked, ...]:
    """Return all candidates of the task's recipe, the best first. A single candidate is not judged.

    `leader` is updated on the way, for callers that are interrupted. Work in the `journal` is not repeated.

    Raises:
        TflqError: All candidates failed; this is the first one's error.
    """
    recipe = task.recipe
    if len(recipe.candidates) == 1:
        return (Ranked(recipe.candidates[0], None),)
    contest = _Contest(task, leader or Leader(), journal or Journal(None, {}))
    first = ranked(contest.first_turn())
    if first[0].score is None:
        build(replace(task, samples=parted(task.samples)[0], methods=first[0].methods))  # raises the error that it met
    finalists = list(first[:FINALISTS])
    for turn in range(1, contest.turns):
        finalists = _leaving(finalists, turn)
        finalists = contest.again(finalists, turn)
    best, *others = (*ranked(finalists), *first[FINALISTS:]) if contest.turns > 1 else first
    return (replace(best, proof=contest.proof(best.methods)), *others)


def _leaving(candidates: Sequence[Ranked], turns: int) -> list[Ranked]:
    """Return the candidates; those that are significantly worse after `turns` turns are marked."""
    running = [c for c in candidates if c.score is not None and not c.left]
    if not running:
        return list(candidates)
    best = min((c.score for c in running if c.score is not None), key=lambda score: float(score.losses.mean()))

    def marked(c: Ranked) -> Ranked:
        if c.score is None or c.left or not is_far_behind(c.score, best, BEHIND):
            return c
        return replace(c, left=Left(_ratio(c.score, best), turns))

    return [marked(c) for c in candidates]


def _ratio(score: Score, best: Score) -> float:
    return float(score.losses.mean() / max(best.losses.mean(), 1e-300))


@dataclass(frozen=True, slots=True, eq=False)
class _Entrant:
    """A candidate in a turn; `number` counts the builds."""

    methods: Methods
    turn: int
    number: int


#: The result of a candidate, and its model if there is one.
_Outcome: TypeAlias = "tuple[Ranked, Built | None]"


class _Contest:
    """Candidates built and judged, one after another."""

    def __init__(self, task: Task, leader: Leader, journal: Journal) -> None:
        self._task, self._leader, self._journal, recipe = task, leader, journal, task.recipe
        self.turns = min(recipe.turns, TURNS - 1)  # the next quarter is left for the proof
        self._parts = [parted(task.samples, turn) for turn in range(self.turns + 1)]
        bases = len({replace(methods, refining=Refining()) for methods in recipe.candidates})
        refined = sum(not methods.refining.changes_nothing for methods in recipe.candidates)
        self._work = bases + refined + (self.turns - 1) * min(FINALISTS, len(recipe.candidates)) + 1
        self._done = 0
        for methods in sorted(recipe.candidates, key=lambda m: m.equalize is not None):  # they run the float model
            with suppress(ModelError, UndefinedResultError, UnsupportedError):  # building it will raise the error
                foreseen(replace(task, methods=methods, samples=self._parts[0][0]))

    def first_turn(self) -> list[Ranked]:
        """Return all candidates; those that passed the heat are judged by the quarter held back in the first turn."""
        candidates, judging = self._task.recipe.candidates, self._parts[0][1]
        if len(judging) < 2 * HEAT:  # a heat would save nothing
            return self._with_leader(
                self._each(lambda entrant, tell: self._entered(entrant, tell), self._entrants(candidates), "turn 0")
            )
        heat = slice(max(HEAT, len(judging) // SHARE))
        bases = self._entrants(tuple(dict.fromkeys(replace(m, refining=Refining()) for m in candidates)), what="heat")
        heated = list(self._each(lambda entrant, tell: self._entered(entrant, tell, heat), bases, "heat"))
        built = {ranked.methods: model for ranked, model in heated if model is not None}
        scores = {ranked.methods: ranked.score for ranked, _ in heated if ranked.score is not None}
        best = min(scores.values(), key=lambda score: float(score.losses.mean()), default=None)

        def left(methods: Methods) -> Ranked | None:
            base = replace(methods, refining=Refining())
            score = scores.get(base)
            if best is None or score is None or not is_far_behind(score, best, BEHIND if methods == base else HOPELESS):
                return None
            dropped = Left(_ratio(score, best), samples=score.samples, ranges_alone=methods != base)
            return Ranked(methods, score if methods == base else None, left=dropped)

        def finished(entrant: _Entrant, tell: Progress | None) -> _Outcome:
            before = scores.get(entrant.methods)
            if before is None:
                return self._entered(entrant, tell)
            rest, model = self._entered(entrant, tell, slice(heat.stop, None), built.get(entrant.methods))
            return (rest if rest.score is None else replace(rest, score=join([before, rest.score]))), model

        gone = {methods: ranked for methods in candidates if (ranked := left(methods)) is not None}
        staying = self._entrants(tuple(methods for methods in candidates if methods not in gone), known=built)
        outcomes = {ranked.methods: ranked for ranked in self._with_leader(self._each(finished, staying, "turn 0"))}
        return [gone.get(methods) or outcomes[methods] for methods in candidates]

    def again(self, candidates: Sequence[Ranked], turn: int) -> list[Ranked]:
        """Return the candidates; remaining ones have their scores over one more turn."""
        running = {c.methods: c.score for c in candidates if not c.left and c.score is not None}
        entrants = self._entrants(tuple(running), turn)
        scored = self._each(lambda entrant, tell: self._entered(entrant, tell), entrants, f"turn {turn}")
        outcomes: dict[Methods, Ranked] = {}
        for once_more, _ in scored:
            before = running[once_more.methods]
            outcomes[once_more.methods] = (
                once_more if once_more.score is None else replace(once_more, score=join([before, once_more.score]))
            )
        return [outcomes.get(c.methods, c) for c in candidates]

    def proof(self, methods: Methods) -> Score | None:
        """Return the score of a candidate on the quarter that has judged none; None if all samples serve both."""
        if len(self._task.samples) < FEW:
            return None
        entrants = self._entrants((methods,), self.turns, what="proof")
        ((found, _),) = self._each(lambda entrant, tell: self._entered(entrant, tell), entrants, "proof")
        return found.score

    def _entrants(
        self, candidates: Sequence[Methods], turn: int = 0, known: Collection[Methods] = (), what: str = ""
    ) -> list[_Entrant]:
        """Return candidates that are to be built, or are `known` already, with their numbers."""
        first, fitting = self._done, self._parts[turn][0]
        fresh = [methods for methods in candidates if methods not in known]
        self._done += len(fresh)
        if self._task.jobs > 1:
            what = what or f"turn {turn}"
            for methods in (m for m in fresh if self._journal.get(entry_key(what, m)) is None):
                with suppress(ModelError, UndefinedResultError, UnsupportedError):  # building it will raise
                    share_parts(replace(self._task, methods=methods, samples=fitting))
            expect_scores(self._task, self._parts[turn][1])
        numbers = {methods: first + place for place, methods in enumerate(fresh)}
        return [_Entrant(methods, turn, numbers.get(methods, first)) for methods in candidates]

    def _each(
        self, work: Callable[[_Entrant, Progress | None], _Outcome], entrants: Sequence[_Entrant], what: str
    ) -> Iterator[_Outcome]:
        """Yield the results of entrants; those in the journal come without a model, the others are written to it."""
        keys = {entrant: entry_key(what, entrant.methods) for entrant in entrants}
        entries = {entrant: self._journal.get(key) for entrant, key in keys.items()}
        missing = [entrant for entrant, entry in entries.items() if entry is None]
        with closing(each(work, missing, self._task.jobs, self._task.progress)) as outcomes:
            for entrant, entry in entries.items():
                if entry is not None:
                    yield rank_from(entrant.methods, entry), None
                    continue
                outcome = next(outcomes)
                self._journal.note(keys[entrant], entry_of(outcome[0]))
                yield outcome

    def _with_leader(self, outcomes: Iterator[_Outcome]) -> list[Ranked]:
        """Return the results of candidates; the leader is updated while they arrive."""
        ranked = []
        for outcome, built in outcomes:
            self._leader.note(outcome, built)
            ranked.append(outcome)
        return ranked

    def _entered(
        self, entrant: _Entrant, tell: Progress | None, which: slice = slice(None), built: Built | None = None
    ) -> _Outcome:
        """Return a built candidate, judged by `which` of its turn's held-back samples, and its model.

        `built` is that model if it is already at hand.
        """
        task = replace(self._task, progress=tell)
        part = f"configuration {entrant.number + 1} of at most {self._work}"
        inner = part_of(tell, part, entrant.number, self._work)
        task.tell(part, STEPS * entrant.number, STEPS * self._work)
        fitting, judging = self._parts[entrant.turn]
        try:
            built = built or build(replace(task, samples=fitting, methods=entrant.methods, progress=inner))
        except CalibrationError:
            raise
        except TflqError as error:
            return Ranked(entrant.methods, None, str(error)), None
        return Ranked(entrant.methods, judged(task, built, judging, which)), built
