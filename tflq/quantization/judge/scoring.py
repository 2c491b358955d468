"""Candidates run on held-back samples, and the losses of their outputs against the float model's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.fidelity import divergences
from tflq.comparison.inspection.layout import layout_of
from tflq.model.ir import Model, view
from tflq.quantization.anchors import Reading, Row, reading_of
from tflq.quantization.build.build import Built
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import Part, parted, parts_of, whole
from tflq.quantization.judge.fidelity import Fidelity
from tflq.quantization.judge.selection import Score
from tflq.quantization.params import codes_of, real
from tflq.quantization.runner import Runner, Sample, executor
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scores import Scores, scores_of


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


def _reference(task: Task, tensors: Sequence[int], part: Part) -> list[Row]:
    """Return the float model's values of the tensors for each sample of a part, flat."""

    def made() -> list[Row]:
        runs = Runner(task.reference or task.floats.model, tensors).each(part)
        return [[f[tensor].astype(np.float64).reshape(-1) for tensor in tensors] for f in runs]

    return task.shared.once(("scores", tuple(tensors), part.quarters), made)
