"""Advice after a quantization: the calibration data judged, and options that win losses back, tried and measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from tflq.errors import TflqError
from tflq.interrupts import Progress
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import Model, TensorType, rooted, view
from tflq.quantization.frontier import Runner, Sample, part_of
from tflq.quantization.judge.comparison import Fidelities
from tflq.quantization.judge.outputs import Truth
from tflq.quantization.pipeline import quantize
from tflq.quantization.quarters import LOOKED_AT
from tflq.quantization.recipe import AUTO, NO_TAIL, PRESETS, Mode, Recipe
from tflq.quantization.recipe_files import read_budget
from tflq.quantization.result import Result
from tflq.quantization.samples import Calibration
from tflq.quantization.streams import integer_stream

#: If more than this share of other samples lies beyond the calibration data, a forecast needs more of these.
UNSURE = 0.1
#: Operators that are tried in float together, and samples from which on one class is a remark.
_TOGETHER, _CLASSES_FROM = 3, 8
#: The most sensitive operators in the next wider mode, up to a tenth of the multiply-accumulates.
_BUDGET, _MOST_MEASURED = "share<=0.1", 100
#: The share of the bytes that four bits save to try for operators that keep eight.
_MORE_EIGHTS = 0.5
#: Ratios are within this, in dB.
_MOST_RATIO = 300.0
#: Less than this, in dB or as a share, is no gain.
_LEAST_RATIO, _LEAST_SHARE = 0.5, 0.001
#: The mode to try for each mode.
_WIDER = {Mode.INT8: "int16x8", Mode.UINT8: "int16x8", Mode.INT8X4: "int8", Mode.DYNAMICX4: "dynamic"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A model with some options added: its quality on the same samples, and its price.

    `options` are words to add to the command; none for the model as written. `sqnr` is the ratio by which models are
    judged, dB; `accuracy` and `metrics` need labels. `size` is in bytes, `floats` and `wides` are operators in float
    and in 16 bits. If the options are refused, `error` is the reason.
    """

    options: tuple[str, ...]
    sqnr: float = 0.0
    accuracy: float | None = None
    agreement: float | None = None
    metrics: tuple[tuple[str, float], ...] = ()
    size: int = 0
    floats: int = 0
    wides: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """Remarks about the calibration data, the model as written, and the trials, what wins back most first."""

    data: tuple[str, ...]
    written: Measured
    trials: tuple[Measured, ...]
    samples: int

    @property
    def worth(self) -> tuple[Measured, ...]:
        """The trials that win something back."""
        return tuple(trial for trial in self.trials if not trial.error and self.gain(trial) > 0)

    def gain(self, trial: Measured) -> float:
        """Return how much better a trial is: shares of accuracy or of the first metric, else dB; 0 if it is little."""
        before, after = self.written.accuracy, trial.accuracy
        least = _LEAST_SHARE
        if self.written.metrics and trial.metrics:
            before, after = self.written.metrics[0][1], trial.metrics[0][1]
        if before is None or after is None or before == after:
            before, after, least = self.written.sqnr, trial.sqnr, _LEAST_RATIO
        gained = after - before
        return gained if abs(gained) >= least and not np.isnan(gained) else 0.0


def advise(
    model: Model,
    samples: Calibration,
    recipe: Recipe,
    result: Result,
    progress: Progress | None = None,
    *,
    labels: Sequence[Truth] | None = None,
    evaluation: Calibration | None = None,
    **options: Any,
) -> Advice:
    """Return advice about the quantization of `model` with `recipe`, which gave `result`.

    Every trial quantizes again as the same command with the option would, so its figures are those of that command.
    `options` are those of `quantize`.

    Raises:
        CalibrationError: See `quantize`.
    """
    # Classes of a stream depend on states.
    classes = _class_remarks(model, samples) if integer_stream(model, recipe) is None else ()
    data, trials = (*result.report.data, *classes, *_forecast_remarks(result)), []
    candidates = to_try(model, recipe, result, is_evaluated=evaluation is not None)
    for number, (words, changed) in enumerate(candidates):
        tell = part_of(progress, f"trying {' '.join(words)}", number, len(candidates))
        try:
            again = quantize(model, samples, changed, tell, labels=labels, evaluation=evaluation, **options)
            trials.append(_measure(words, again))
        except TflqError as error:
            trials.append(Measured(words, error=str(error)))
    advice = Advice(data, _measure((), result), (), result.report.comparison.samples)
    ordered = sorted(trials, key=lambda trial: (bool(trial.error), -advice.gain(trial), trial.size))
    return replace(advice, trials=tuple(ordered))


def to_try(model: Model, recipe: Recipe, result: Result, *, is_evaluated: bool) -> list[tuple[tuple[str, ...], Recipe]]:
    """Return the options that `advise` tries, with the recipes that they amount to."""
    stream = integer_stream(model, recipe)
    return list(_candidates(rooted(model, stream.root) if stream else model, recipe, result, is_evaluated=is_evaluated))


def _candidates(
    model: Model, recipe: Recipe, result: Result, *, is_evaluated: bool
) -> Iterator[tuple[tuple[str, ...], Recipe]]:
    """Yield the options to try with the recipes that they amount to; a handful.

    A budget is compared on samples that are held back for it, so it is tried only if there are samples to evaluate on.
    It measures every operator alone, so only models of up to _MOST_MEASURED operators get one.
    """
    costly = [str(operator) for operator in costly_operators(model, result)[:_TOGETHER]]
    for count in sorted({1, len(costly)} if costly else ()):
        words = tuple(word for operator in costly[:count] for word in ("--keep-float", operator))
        yield words, replace(recipe, keep_float=(*recipe.keep_float, *costly[:count]))
    if recipe.mode in _WIDER and not recipe.portable:
        yield ("--mode", _WIDER[recipe.mode]), replace(recipe, mode=Mode(_WIDER[recipe.mode]))
    takes_budget = recipe.budget is None and not recipe.portable and not recipe.runtimes
    if (
        is_evaluated
        and len(view(model).ops) <= _MOST_MEASURED
        and takes_budget
        and recipe.mode in (Mode.INT8, Mode.UINT8, Mode.INT8X4)
    ):
        yield ("--budget", _BUDGET), replace(recipe, budget=read_budget(_BUDGET))
    if recipe.mode is Mode.INT8X4 and recipe.budget is None and (recipe.eight_bits or 0.0) < _MORE_EIGHTS:
        yield ("--eight-bits", str(_MORE_EIGHTS)), replace(recipe, eight_bits=_MORE_EIGHTS)
    if recipe.float_tail == NO_TAIL:
        yield ("--float-tail", AUTO), replace(recipe, float_tail=AUTO)
    if (recipe.candidates, recipe.turns) == (PRESETS["fast"].candidates, PRESETS["fast"].turns):
        better = PRESETS["balanced"]
        yield ("--recipe", "balanced"), replace(recipe, candidates=better.candidates, turns=better.turns)


def costly_operators(model: Model, result: Result) -> list[int]:
    """Return operators of the float model, those first that probably cost most.

    They are ordered by their measured sensitivities, if the result has them; else by the noise, relative to the signal,
    that their results have more than their inputs.
    """
    if result.report.sensitivities:
        return [cost.operator for cost in result.report.sensitivities]
    graph, noises = view(model), dict[int, float]()
    for tensor in result.report.comparison.tensors:
        share = 10 ** (-min(max(tensor.sqnr, -_MOST_RATIO), _MOST_RATIO) / 10)
        noises[tensor.index] = max(share, noises.get(tensor.index, 0.0))
    added = {}
    for index, share in noises.items():
        if 0 <= index < len(graph.ops):
            makers = [graph.maker(t) for t in graph.op(index).inputs if t >= 0]
            added[index] = share - max((noises.get(m.index, 0.0) for m in makers if m is not None), default=0.0)
    return sorted((index for index in added if added[index] > 0), key=lambda index: (-added[index], index))


def _measure(options: tuple[str, ...], result: Result) -> Measured:
    comparison, streamed = result.report.comparison, result.report.streamed
    agreement = comparison.agreement
    accuracies = None if agreement is None else agreement.accuracies
    floats, wides = _operators(result.model)
    return Measured(
        options,
        comparison.leading if streamed is None else streamed.sqnr,
        None if accuracies is None else accuracies[1],
        None if agreement is None else agreement.rate,
        _metrics(comparison),
        file_size(result.model),
        floats,
        wides,
    )


def _metrics(comparison: Fidelities) -> tuple[tuple[str, float], ...]:
    return tuple((metric.name, metric.other) for metric in comparison.figures.metrics)


def _operators(model: Model) -> tuple[int, int]:
    """Return the number of operators whose first result is float, and of those with 16 bits, without conversions."""
    graph = view(model)
    made = [
        graph.tensors[op.outputs[0]].type
        for op in graph.ops
        if op.outputs and op.builtin not in ("QUANTIZE", "DEQUANTIZE")
    ]
    return made.count(TensorType.FLOAT32), made.count(TensorType.INT16)


def _forecast_remarks(result: Result) -> Iterator[str]:
    """Yield that the forecast for other samples is unsure, if more than UNSURE of them lie beyond these."""
    comparison = result.report.comparison
    share = comparison.records / max(1, comparison.samples)
    if not result.report.held_back and share > UNSURE:
        yield (
            f"unsure forecast: about {share:.0%} of other samples reach beyond all of these in some tensor; more "
            "calibration samples narrow that"
        )


def _class_remarks(model: Model, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield that the float model gives all samples one class."""
    output = view(model).outputs[0]
    rows = [values[output] for values in Runner(model, (output,)).each(islice(samples, LOOKED_AT))]
    is_row = bool(rows) and rows[0].ndim == 2 and rows[0].shape[0] == 1 and rows[0].shape[1] >= 2
    if is_row and len(rows) >= _CLASSES_FROM:
        classes = {int(row.argmax()) for row in rows}
        if len(classes) == 1:
            yield (
                f"one class: the float model gives class {classes.pop()} to all of the first {len(rows)} samples; "
                "take samples of every class, or check --mean and --std"
            )
