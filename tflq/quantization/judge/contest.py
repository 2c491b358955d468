"""The race of a recipe's candidates on held-back samples.

Candidates run on held-back samples, and the losses of their outputs against the float model's.

The race of a recipe's candidates: all begin on few samples, and significantly worse ones are dropped.

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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import divergences
from tflq.comparison.inspection.layout import layout_of
from tflq.errors import CalibrationError, ModelError, TflqError, UndefinedResultError, UnsupportedError
from tflq.interrupts import Progress
from tflq.model.ir import Model, view
from tflq.quantization.anchors import Reading, Row, Scores, reading_of, scores_of
from tflq.quantization.build.build import Built, Task, build, foreseen, share_parts
from tflq.quantization.frontier import STEPS, Runner, Sample, each, executor, part_of
from tflq.quantization.judge.detections import Fidelity
from tflq.quantization.judge.journal import (
    Journal,
    Left,
    Ranked,
    Score,
    entry_key,
    entry_of,
    is_far_behind,
    join,
    rank_from,
    ranked,
)
from tflq.quantization.params import codes_of, real
from tflq.quantization.quarters import FEW, TURNS, Quarter, parted, parts_of, whole
from tflq.quantization.recipe import Methods, Refining
from tflq.quantization.scheme.float_graph import FloatModel


def judged(task: Task, built: Built, judging: Sequence[Sample], which: slice = slice(None)) -> Score:
    """Run the integer model on `which` of the samples and score it against the task's float model.

    With several runtimes, a sample's loss is the mean over them, and its greatest score must be the same on
    all of them to count as the same.
    """
    scores, reading = scores_of(task.floats), reading_for(task)
    beta, tensors = scores.beta, _tensors(scores, reading)
    model, twins = built.integer.model, [_twin(built, task.floats, tensor) for tensor in tensors]
    graph, inputs = view(model), task.floats.graph.inputs
    pairs = list(zip(inputs, graph.inputs, strict=True))
    codes = [{n: codes_of(graph.tensors[n], s[o]) for o, n in pairs} for s in judging[which]]
    runs = [_run(task, built, twins, profile, codes) for profile in _judges(task, model)]
    references = [row for part in parts_of(judging) for row in _reference(task, tensors, part)][which]
    tally = _Tally(reading, beta)
    for reference, *results in zip(references, *runs, strict=True):
        tally.add(reference, [[real(graph.tensors[t], result[t]).reshape(-1) for t in twins] for result in results])
    return tally.score


class _Tally:
    """Losses while samples are judged."""

    def __init__(self, reading: Reading | None, beta: float | None) -> None:
        self._reading, self._beta = reading, beta
        self._lost, self._noises = list[float](), list[float]()
        self._groups = list[list[float]]()
        self._given = Fidelity("", "", -1)  # the float model's own tensor, whose signal is about its mean
        self._same, self._differing = 0, 0

    def add(self, reference: Row, rows: Sequence[Row]) -> None:
        """Count one sample: the float model's tensors, and those of each runtime."""
        first, others = reference[0], [row[0] for row in rows]
        beside = 0.0
        if self._reading is None:
            self._noises.append(float(np.mean([np.square(first - row).sum() for row in others])))
            self._given.add(first, first)
        else:
            last = slice(-len(self._reading.layout.tensors), None)
            groups = np.mean([self._reading.noises(reference[last], row[last]) for row in rows], axis=0)
            self._groups.append(groups.tolist())
            self._noises.append(float(groups.sum()))
            outputs = [self._reading.layout.groups[family[0]].output for family in self._reading.families]
            beside = sum(noise for noise, output in zip(groups.tolist(), outputs, strict=True) if output)
        pairs = [zip(rows[0], row, strict=True) for row in rows[1:]]
        self._differing += sum(int(np.count_nonzero(a != b)) for pair in pairs for a, b in pair)
        if self._beta is not None:
            divergence = float(divergences(self._beta * first, self._beta * np.array(others)).mean())
            self._lost.append(divergence + beside)
            self._same += int(all(first.argmax() == row.argmax() for row in others))

    @property
    def score(self) -> Score:
        """The score over the samples so far."""
        known = np.array(self._lost) if self._beta is not None else None
        names = () if self._reading is None else self._reading.names
        groups = tuple(zip(names, np.array(self._groups).reshape(len(self._groups), len(names)).T, strict=True))
        noises = np.array(self._noises)
        signal = self._given.judging if self._reading is None else float(len(noises))
        return Score(known, signal, sum(self._noises), self._same, len(noises), noises, self._differing, groups)


def _tensors(scores: Scores, reading: Reading | None) -> tuple[int, ...]:
    """Return the tensors that are judged: the scores first; the last ones are those that the reading describes."""
    if reading is None:
        return (scores.tensor,)
    return reading.layout.tensors if scores.beta is None else (scores.tensor, *reading.layout.tensors)


def reading_for(task: Task) -> Reading | None:
    """Return how the outputs are read, from a quarter of the samples; None for a single output with one meaning."""
    layout = layout_of(task.floats.graph)
    if layout.is_plain:
        return None

    def made() -> Reading:
        parts = parts_of(parted(whole(task.samples))[1])
        return reading_of(layout, [row for part in parts for row in _reference(task, layout.tensors, part)])

    return task.shared.once("reading", made)


def _twin(built: Built, floats: FloatModel, tensor: int) -> int:
    """Return the integer model's tensor that corresponds to one of the float model.

    The float model's own conversions may be gone.
    """
    twins = built.integer.tensors
    graph = floats.graph
    while tensor not in twins and (maker := graph.maker(tensor)) and maker.name in ("QUANTIZE", "DEQUANTIZE"):
        tensor = maker.inputs[0]
    return twins[tensor]


def _judges(task: Task, model: Model) -> tuple[str, ...]:
    """Return the profiles that judge a model; `litert-ref` replaces a single one that does not take it."""
    return task.recipe.judges if task.recipe.runtimes else (executor(model, task.recipe.executor),)


def _run(
    task: Task, built: Built, tensors: Sequence[int], profile: str, codes: Sequence[Sample]
) -> Iterator[Mapping[int, NDArray[Any]]]:
    """Yield tensors of the integer model for each sample."""
    model = built.integer.model
    key = "judging together", profile, built.assignment.scheme.modes, tuple(tensors)
    together = task.shared.once(key, lambda: Runner(model, tensors, profile).together(codes))
    return Runner(model, tensors, profile, together).each(codes)


def expect_scores(task: Task, judging: Sequence[Sample]) -> None:
    """Compute the float model's scores in advance, for samples that candidates will be judged by."""
    tensors = _tensors(scores_of(task.floats), reading_for(task))
    for part in parts_of(judging):
        _reference(task, tensors, part)


def _reference(task: Task, tensors: Sequence[int], part: Quarter) -> list[Row]:
    """Return the float model's values of the tensors for each sample of a part, flat."""

    def made() -> list[Row]:
        runs = Runner(task.reference or task.floats.model, tensors).each(part)
        return [[f[tensor].astype(np.float64).reshape(-1) for tensor in tensors] for f in runs]

    return task.shared.once(("scores", tuple(tensors), part.quarters), made)


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
