"""The choice of the best configuration, judged without labels on samples that none of them has seen.

No fixed configuration is safe: ranges that rescue one model ruin another. Models are judged by the values that decide
their first output. These are the inputs of the last SOFTMAX, if there is one, since its coarse output hides
differences; otherwise the output itself. Candidates are ranked by the mean KL divergence between the float model's
distribution and theirs. A difference smaller than its standard error is a tie, and ties are broken by the best
signal-to-noise ratio. Outputs that are not distributions are ranked by this ratio alone.

If the recipe names several runtimes, each sample's loss is the mean over them. Ties are then broken by the fewest score
elements that differ between the runtimes, and after that by the ratio.

`judge.contest` chooses these samples, and decides when a candidate is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.fidelity import divergences
from tflq.model.ir import Model, view
from tflq.quantization.build.build import Built
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import Part, parts_of
from tflq.quantization.params import codes_of, real
from tflq.quantization.recipe.recipe import Methods
from tflq.quantization.runner import Runner, Sample, executor
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scores import scores_of
from tflq.typing import Array

Reals = NDArray[np.float64]

#: Divergences that differ by less than this share, or by less than this many nats, always count as a tie.
EVEN, NEGLIGIBLE = 0.02, 1e-4
#: A candidate is dropped if it is behind by more than this many standard errors.
SURE = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """The result of a candidate, sample by sample: KL divergences [N] in nats (None: no distribution), and noise."""

    divergences: Reals | None
    signal: float  # sum of squares of the float model's scores
    noise: float  # sum of squares of the differences
    same: int  # samples with the same greatest score
    samples: int
    noises: Reals = field(default_factory=lambda: np.zeros(0))  # sum of squares of the differences by sample, [N]
    differing: int = 0  # elements of the scores that differ between a further runtime and the first

    @property
    def losses(self) -> Reals:
        """Losses by sample, [N]: the divergence, or the noise if there is no distribution."""
        return self.noises if self.divergences is None else self.divergences


@dataclass(frozen=True, slots=True)
class Left:
    """When a configuration was dropped, and the ratio of its loss to the best's.

    It was dropped after a number of `turns`, or in the heat of `samples`; with `ranges_alone`, because its ranges
    without refinement lost that much.
    """

    ratio: float
    turns: int = 0
    samples: int = 0
    ranges_alone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A configuration and its score; `error` is the reason if there is no score.

    `left` is set if it was dropped before all samples had judged it. Its score covers the samples until then,
    and is None if it was
    not carried out built.
    """

    methods: Methods
    score: Score | None
    error: str = ""
    left: Left | None = None

    @property
    def divergence(self) -> float:
        """Mean KL divergence to the float model's distribution, nats; NaN if there is no distribution."""
        divergences = None if self.score is None else self.score.divergences
        return math.nan if divergences is None else float(divergences.mean())

    @property
    def sqnr(self) -> float:
        """Signal-to-noise ratio of the scores, dB; -inf without a model."""
        if self.score is None:
            return -math.inf
        return 10 * math.log10(max(self.score.signal, 1e-300) / max(self.score.noise, 1e-300))

    @property
    def differing(self) -> int:
        """Number of score elements that differ between the first and any other runtime."""
        return 0 if self.score is None else self.score.differing

    @property
    def agreement(self) -> float:
        """Share of samples with the same greatest score; NaN if there is no distribution."""
        if self.score is None or self.score.divergences is None:
            return math.nan
        return self.score.same / self.score.samples


def judged(task: Task, built: Built, judging: Sequence[Sample], which: slice = slice(None)) -> Score:
    """Run the integer model on `which` of the samples and score it against the task's float model.

    With several runtimes, a sample's loss is the mean over them, and its greatest score must be the same on
    all of them to count as the same.
    """
    scores = scores_of(task.floats)
    tensor, beta = scores.tensor, scores.beta
    model, twin = built.integer.model, _twin(built, task.floats, tensor)
    graph, inputs = view(model), task.floats.graph.inputs
    pairs = list(zip(inputs, graph.inputs, strict=True))
    codes = [{n: codes_of(graph.tensors[n], s[o]) for o, n in pairs} for s in judging[which]]
    runs = [_run(task, built, twin, profile, codes) for profile in _judges(task, model)]
    references = [row for part in parts_of(judging) for row in _reference(task, tensor, part)][which]
    lost, noises, same, differing = [], [], 0, 0
    for reference, *results in zip(references, *runs, strict=True):
        rows = [real(graph.tensors[twin], result[twin]).reshape(-1) for result in results]
        noises.append(float(np.mean([np.square(reference - row).sum() for row in rows])))
        differing += int(np.count_nonzero(np.any([rows[0] != row for row in rows], axis=0)))
        if beta is not None:
            lost.append(float(divergences(beta * reference, beta * np.array(rows)).mean()))
            same += int(all(reference.argmax() == row.argmax() for row in rows))
    signal = sum(float(reference @ reference) for reference in references)
    known = np.array(lost) if beta is not None else None
    return Score(known, signal, sum(noises), same, len(codes), np.array(noises), differing)


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


def _run(task: Task, built: Built, tensor: int, profile: str, codes: Sequence[Sample]) -> Iterator[Mapping[int, Array]]:
    """Yield one tensor of the integer model for each sample."""
    model = built.integer.model
    key = "judging together", profile, built.assignment.scheme.modes, tensor
    together = task.shared.once(key, lambda: Runner(model, [tensor], profile).together(codes))
    return Runner(model, [tensor], profile, together).each(codes)


def expect_scores(task: Task, judging: Sequence[Sample]) -> None:
    """Compute the float model's scores in advance, for samples that candidates will be judged by."""
    for part in parts_of(judging):
        _reference(task, scores_of(task.floats).tensor, part)


def _reference(task: Task, tensor: int, part: Part) -> list[Reals]:
    """Return the float model's values of the tensor for each sample of a part, flat."""

    def made() -> list[Reals]:
        runs = Runner(task.floats.model, [tensor]).each(part)
        return [f[tensor].astype(np.float64).reshape(-1) for f in runs]

    return task.shared.once(("scores", tensor, part.quarters), made)


def joined(scores: Sequence[Score]) -> Score:
    """Return the score over all samples of several scores."""
    known = [s.divergences for s in scores if s.divergences is not None]
    return Score(
        np.concatenate(known) if known else None,
        sum(s.signal for s in scores),
        sum(s.noise for s in scores),
        sum(s.same for s in scores),
        sum(s.samples for s in scores),
        np.concatenate([s.noises for s in scores]),
        sum(s.differing for s in scores),
    )


def ranked(candidates: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """Return the candidates: the best first, then those that were dropped, then those without a model."""
    known = [c for c in candidates if c.score is not None and not c.left]
    gone = [*(c for c in candidates if c.left), *(c for c in candidates if c.score is None and not c.left)]
    if not known:
        return tuple(gone)
    if any(math.isnan(c.divergence) for c in known):
        known.sort(key=lambda c: -c.sqnr)
        if not any(c.differing for c in known):
            return (*known, *gone)
    else:
        known.sort(key=lambda c: c.divergence)
    best = known[0]
    even = [c for c in known if _even(c, best)]
    behind = [c for c in known if not _even(c, best)]
    return (*sorted(even, key=lambda c: (c.differing, -c.sqnr)), *behind, *gone)


def is_far_behind(candidate: Score, best: Score, times: float) -> bool:
    """Return whether a candidate lost significantly more than `times` what the best lost, over the same samples.

    The difference must exceed SURE standard errors of the mean of the paired differences.
    """
    behind = candidate.losses - times * best.losses
    error = float(behind.std() / math.sqrt(len(behind)))
    negligible = 0.0 if candidate.divergences is None else NEGLIGIBLE
    return float(behind.mean()) > max(SURE * error, negligible)


def is_even(candidate: Score, best: Score) -> bool:
    """Return whether a candidate's difference to the best is within what the samples can distinguish."""
    behind = candidate.losses - best.losses
    error = float(behind.std() / math.sqrt(max(1, len(behind))))
    if best.divergences is None:
        return not len(behind) or float(behind.mean()) <= error
    return float(behind.mean()) <= max(error, EVEN * float(best.divergences.mean()), NEGLIGIBLE)


def _even(candidate: Ranked, best: Ranked) -> bool:
    assert candidate.score is not None
    assert best.score is not None
    return is_even(candidate.score, best.score)
