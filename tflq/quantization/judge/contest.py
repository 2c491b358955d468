"""The candidates of a recipe race: all begin on few samples, and who is surely behind leaves.

1. *Heat.* The ranges of all candidates, without what refines them, are carried out and judged by the first quarter of
   the samples that are held back. Ranges that lose more than HOPELESS times what the best lose leave with all
   candidates that refine them: refinement wins back a factor of two, seldom three. Others that are not refined leave
   where they lose more than BEHIND times as much.
2. *First turn.* Those that are left are refined on all samples that are not held back, and judged by all that are.
3. *Other turns.* The best FINALISTS are fitted to other quarters and judged by the one that is held back then; after
   every turn those that are surely behind leave.

Nobody leaves by chance: the differences to the best are paired by sample, and surely means by three standard errors of
their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tflq.errors import CalibrationError, ModelError, TflqError, UndefinedResultError, UnsupportedError
from tflq.quantization.build.build import Built, build, foreseen
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import parted
from tflq.quantization.judge.selection import Ranked, Score, is_far_behind, joined, judged, ranked
from tflq.quantization.progress import STEPS, part_of
from tflq.quantization.recipe.recipe import Methods
from tflq.quantization.recipe.refining import Refining

#: How many candidates are judged in more than one turn.
FINALISTS = 6
#: The heat is judged by so many samples, at least, and one of so many that are held back.
HEAT, SHARE = 8, 4
#: How many times the best's losses: ranges that no refinement saves, and candidates that are as they are.
HOPELESS, BEHIND = 4.0, 1.1


@dataclass(slots=True, eq=False)
class Leader:
    """The best candidate that the first turn has carried out so far, and its model; None before there is one."""

    ranked: Ranked | None = None
    built: Built | None = None

    def note(self, ranked: Ranked, built: Built) -> None:
        """Let a candidate lead if it lost less than the one that leads."""
        before = None if self.ranked is None else self.ranked.score
        if ranked.score is not None and (before is None or ranked.score.losses.mean() < before.losses.mean()):
            self.ranked, self.built = ranked, built


def chosen(task: Task, leader: Leader | None = None) -> tuple[Ranked, ...]:
    """Return all candidates of the task's recipe, the best first. A single candidate is not judged.

    `leader` is told who leads, for callers that are interrupted.

    Raises:
        TflqError: All candidates failed; this is the last one's error.
    """
    recipe = task.recipe
    if len(recipe.candidates) == 1:
        return (Ranked(recipe.candidates[0], None),)
    contest = _Contest(task, leader or Leader())
    first = ranked(contest.first_turn())
    if first[0].score is None and contest.failure is not None:
        raise contest.failure
    if recipe.turns == 1:
        return first
    finalists = list(first[:FINALISTS])
    for turn in range(1, recipe.turns):
        finalists = _leaving(finalists, turn)
        finalists = [contest.again(c, turn) for c in finalists]
    return (*ranked(finalists), *first[FINALISTS:])


def _leaving(candidates: Sequence[Ranked], turns: int) -> list[Ranked]:
    """Return the candidates, those that are surely behind after so many turns marked."""
    running = [c for c in candidates if c.score is not None and not c.left]
    if not running:
        return list(candidates)
    best = min((c.score for c in running if c.score is not None), key=lambda score: float(score.losses.mean()))

    def marked(c: Ranked) -> Ranked:
        if c.score is None or c.left or not is_far_behind(c.score, best, BEHIND):
            return c
        return replace(
            c, left=_times(c.score, best) + (" after the first turn" if turns == 1 else f" after {turns} turns")
        )

    return [marked(c) for c in candidates]


def _times(score: Score, best: Score) -> str:
    return f"lost {float(score.losses.mean() / max(best.losses.mean(), 1e-300)):.1f} times as much as the best"


class _Contest:
    """Candidates carried out and judged, one after another."""

    def __init__(self, task: Task, leader: Leader) -> None:
        self._task, self._leader, recipe = task, leader, task.recipe
        self._parts = [parted(task.samples, turn) for turn in range(recipe.turns)]
        bases = len({replace(methods, refining=Refining()) for methods in recipe.candidates})
        refined = sum(not methods.refining.changes_nothing for methods in recipe.candidates)
        self._work = bases + refined + (recipe.turns - 1) * min(FINALISTS, len(recipe.candidates))
        self._done = 0
        self.failure: TflqError | None = None
        for methods in sorted(recipe.candidates, key=lambda m: m.equalize is not None):  # which run the float model
            with suppress(ModelError, UndefinedResultError, UnsupportedError):  # building it will tell
                foreseen(replace(task, methods=methods, samples=self._parts[0][0]))

    def first_turn(self) -> list[Ranked]:
        """Return all candidates, judged by the quarter held back in the first turn unless they left in the heat."""
        candidates, judging = self._task.recipe.candidates, self._parts[0][1]
        heat = slice(max(HEAT, len(judging) // SHARE))
        if len(judging) < 2 * HEAT:  # nothing to save
            return [self._judged(methods, 0) for methods in candidates]
        built: dict[Methods, Built] = {}
        scores: dict[Methods, Score] = {}
        for base in dict.fromkeys(replace(methods, refining=Refining()) for methods in candidates):
            carried_out = self._built(base, 0)
            if isinstance(carried_out, Built):
                built[base], scores[base] = carried_out, judged(self._task, carried_out, judging, heat)
        best = min(scores.values(), key=lambda score: float(score.losses.mean()), default=None)

        def outcome(methods: Methods) -> Ranked:
            base = replace(methods, refining=Refining())
            score = scores.get(base)
            if score is None or best is None:
                return self._judged(methods, 0)
            if is_far_behind(score, best, BEHIND if methods == base else HOPELESS):
                own = "" if methods == base else "its ranges alone "
                reason = f"{own}{_times(score, best)} in the heat of {score.samples} samples"
                return Ranked(methods, score if methods == base else None, left=reason)
            if methods != base:
                return self._judged(methods, 0)
            rest = judged(self._task, built[base], judging, slice(heat.stop, None))
            ranked = Ranked(methods, joined([score, rest]))
            self._leader.note(ranked, built[base])
            return ranked

        return [outcome(methods) for methods in candidates]

    def again(self, candidate: Ranked, turn: int) -> Ranked:
        """Return a candidate that did not leave with its score over one more turn."""
        if candidate.left or candidate.score is None:
            return candidate
        once_more = self._judged(candidate.methods, turn)
        if once_more.score is None:
            return once_more
        return Ranked(candidate.methods, joined([candidate.score, once_more.score]))

    def _judged(self, methods: Methods, turn: int) -> Ranked:
        """Return a candidate carried out in one turn, judged by what is held back there."""
        carried_out = self._built(methods, turn)
        if not isinstance(carried_out, Built):
            return Ranked(methods, None, str(carried_out))
        ranked = Ranked(methods, judged(self._task, carried_out, self._parts[turn][1]))
        if turn == 0:
            self._leader.note(ranked, carried_out)
        return ranked

    def _built(self, methods: Methods, turn: int) -> Built | TflqError:
        """Carry out a candidate on what is not held back in a turn; the error where it fails."""
        part = f"configuration {self._done + 1} of at most {self._work}"
        inner = part_of(self._task.progress, part, self._done, self._work)
        self._task.tell(part, STEPS * self._done, STEPS * self._work)
        self._done += 1
        try:
            return build(replace(self._task, samples=self._parts[turn][0], methods=methods, progress=inner))
        except CalibrationError:
            raise
        except TflqError as error:
            self.failure = error
            return error
