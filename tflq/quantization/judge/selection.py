"""Which of several configurations is best, judged without labels on samples that none of them has seen.

No fixed configuration is safe: ranges that rescue one model ruin another. Models are judged by what decides their first
output: the scores that the last SOFTMAX reads, where there is one, so that its coarse output hides nothing, else the
output itself. The mean KL divergence between the float model's distribution and the candidate's ranks, as far as these
samples can tell: candidates that are behind by less than the standard error of the difference are even, and of those
the one with the best signal-to-noise ratio is taken. Outputs that are no distribution are ranked by the ratio alone.

A quarter of the samples is held back and judged by; with more turns, other quarters are, too, so that all samples
count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.errors import CalibrationError, ModelError, TflqError, UndefinedResultError, UnsupportedError
from tflq.quantization.build.build import build, foreseen
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import Part, parted, parts_of
from tflq.quantization.integer_model import IntegerModel
from tflq.quantization.params import codes_of, real
from tflq.quantization.recipe.recipe import Methods
from tflq.quantization.runner import Runner, Sample, executor
from tflq.quantization.scheme.float_graph import FloatModel

Reals = NDArray[np.float64]

#: Divergences that differ by less than this share, or by so many nats, count as even, however sure the difference.
EVEN, NEGLIGIBLE = 0.02, 1e-4
#: How many candidates are judged in more than one turn.
FINALISTS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How a candidate did, sample by sample: KL divergences [N] in nats (None: no distribution), and noise."""

    divergences: Reals | None
    signal: float  # sum of squares of the float model's scores
    noise: float  # sum of squares of the differences
    same: int  # samples with the same greatest score
    samples: int


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A configuration and its score; `error` says why there is none."""

    methods: Methods
    score: Score | None
    error: str = ""

    @property
    def divergence(self) -> float:
        """Mean KL divergence to the float model's distribution, nats; NaN where that gives none."""
        divergences = None if self.score is None else self.score.divergences
        return math.nan if divergences is None else float(divergences.mean())

    @property
    def sqnr(self) -> float:
        """Signal-to-noise ratio of the scores, dB; -inf without a model."""
        if self.score is None:
            return -math.inf
        return 10 * math.log10(max(self.score.signal, 1e-300) / max(self.score.noise, 1e-300))

    @property
    def agreement(self) -> float:
        """Share of samples with the same greatest score; NaN where there is no distribution."""
        if self.score is None or self.score.divergences is None:
            return math.nan
        return self.score.same / self.score.samples


def judged(task: Task, built: IntegerModel, samples: Sequence[Sample]) -> Score:
    """Run the integer model on the samples and score it against the task's float model."""
    tensor, beta = _scores(task.floats)
    twin, profile = built.tensors[tensor], executor(built.model, task.recipe.executor)
    graph, inputs = built.model.subgraphs[0], task.floats.graph.inputs
    divergences, signal, noise, same = [], 0.0, 0.0, 0
    codes = ({n: codes_of(graph.tensors[n], s[o]) for o, n in zip(inputs, graph.inputs, strict=True)} for s in samples)
    references = (row for part in parts_of(samples) for row in _reference(task, tensor, part))
    for reference, q in zip(references, Runner(built.model, [twin], profile).each(codes), strict=True):
        scores = real(graph.tensors[twin], q[twin]).reshape(-1)
        signal += float(reference @ reference)
        noise += float(np.square(reference - scores).sum())
        if beta is not None:
            divergences.append(_divergence(beta * reference, beta * scores))
            same += int(reference.argmax() == scores.argmax())
    return Score(np.array(divergences) if beta is not None else None, signal, noise, same, len(samples))


def _reference(task: Task, tensor: int, part: Part) -> list[Reals]:
    """Return what the float model makes of the tensor for each sample of a part, flat."""

    def made() -> list[Reals]:
        runs = Runner(task.floats.model, [tensor]).each(part)
        return [f[tensor].astype(np.float64).reshape(-1) for f in runs]

    return task.shared.once(("scores", tensor, part.quarters), made)


def joined(scores: Sequence[Score]) -> Score:
    """Return the score over all samples of several scores."""
    divergences = [s.divergences for s in scores if s.divergences is not None]
    return Score(
        np.concatenate(divergences) if divergences else None,
        sum(s.signal for s in scores),
        sum(s.noise for s in scores),
        sum(s.same for s in scores),
        sum(s.samples for s in scores),
    )


def _scores(floats: FloatModel) -> tuple[int, float | None]:
    """Return the tensor that decides the first output, and the beta of the SOFTMAX that reads it (None: no SOFTMAX)."""
    if not floats.graph.outputs:
        raise ModelError("the model has no output, by which configurations are judged")
    output = floats.graph.outputs[0]
    for index, operator in enumerate(floats.graph.operators):
        if (
            output in operator.outputs
            and floats.op(index) == "SOFTMAX"
            and len(floats.graph.tensors[output].shape) == 2
        ):
            return operator.inputs[0], float(operator.options["beta"]) if operator.options else 1.0
    return output, None


def _divergence(reference: Reals, scores: Reals) -> float:
    """Return the KL divergence of the distributions that two rows of scores stand for, nats."""
    logs = [row - row.max() - math.log(np.exp(row - row.max()).sum()) for row in (reference, scores)]
    return float(np.sum(np.exp(logs[0]) * (logs[0] - logs[1])))


def ranked(candidates: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """The candidates, the best first; those without a model are last."""
    known = [c for c in candidates if c.score is not None]
    failed = [c for c in candidates if c.score is None]
    if not known or any(math.isnan(c.divergence) for c in known):
        return (*sorted(known, key=lambda c: -c.sqnr), *failed)
    best = min(known, key=lambda c: c.divergence)
    even = [c for c in known if _even(c, best)]
    behind = [c for c in known if not _even(c, best)]
    return (*sorted(even, key=lambda c: -c.sqnr), *sorted(behind, key=lambda c: c.divergence), *failed)


def _even(candidate: Ranked, best: Ranked) -> bool:
    """Whether the samples cannot tell that a candidate is behind."""
    assert candidate.score is not None
    assert best.score is not None
    if candidate.score.divergences is None or best.score.divergences is None:
        return True
    behind = candidate.score.divergences - best.score.divergences
    error = float(behind.std() / math.sqrt(len(behind)))
    return float(behind.mean()) <= max(error, EVEN * best.divergence, NEGLIGIBLE)


def chosen(task: Task) -> tuple[Ranked, ...]:
    """Return all candidates of the task's recipe, the best first.

    All are judged in the first turn, the best FINALISTS of them in the others. A single candidate is not judged.

    Raises:
        TflqError: All candidates failed; this is the last one's error.
    """
    recipe = task.recipe
    if len(recipe.candidates) == 1:
        return (Ranked(recipe.candidates[0], None),)
    contest = _Contest(task)
    first = ranked([contest.judged(methods, range(1)) for methods in recipe.candidates])
    if first[0].score is None and contest.failure is not None:
        raise contest.failure
    if recipe.turns == 1:
        return first
    finalists = [contest.judged(c.methods, range(1, recipe.turns), c.score) for c in first[:FINALISTS]]
    return (*ranked(finalists), *first[FINALISTS:])


class _Contest:
    """Candidates carried out and judged, one after another."""

    def __init__(self, task: Task) -> None:
        self._task, recipe = task, task.recipe
        self._parts = [parted(task.samples, turn) for turn in range(recipe.turns)]
        self._work = len(recipe.candidates) + (recipe.turns - 1) * min(FINALISTS, len(recipe.candidates))
        self._done = 0
        self.failure: TflqError | None = None
        for methods in sorted(recipe.candidates, key=lambda m: m.equalize is not None):  # which run the float model
            with suppress(ModelError, UndefinedResultError, UnsupportedError):  # building it will tell
                foreseen(replace(task, methods=methods, samples=self._parts[0][0]))

    def judged(self, methods: Methods, turns: range, before: Score | None = None) -> Ranked:
        """Return a candidate with its score over these turns, and those before."""
        task = self._task
        scores = [] if before is None else [before]
        for fitting, judging in (self._parts[turn] for turn in turns):
            task.tell("configurations", self._done, self._work)
            self._done += 1
            try:
                built = build(replace(task, samples=fitting, methods=methods, progress=None))
            except CalibrationError:
                raise
            except TflqError as error:
                self.failure = error
                return Ranked(methods, None, str(error))
            scores.append(judged(task, built.integer, judging))
        return Ranked(methods, joined(scores))
