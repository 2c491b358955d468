"""Models that are quantized by way of others: a stream by its step, a loop by its body.

`fit` is `quantize`, which comes here for such models and is called for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tflq.model.ir import Model
from tflq.progress import Progress
from tflq.quantization.judge.streamed import check_steps, compare_steps
from tflq.quantization.loops import Fit
from tflq.quantization.progress import part_of
from tflq.quantization.recipe.files import digest
from tflq.quantization.recipe.recipe import NO_TAIL, Norms, Recipe
from tflq.quantization.recipe.stamp import stamped
from tflq.quantization.result import Result, number
from tflq.quantization.runner import Sample
from tflq.quantization.streams import Stream


def quantize_stream(
    stream: Stream,
    recipe: Recipe,
    fitted: Sequence[Sequence[Sample]],
    judged: Sequence[Sequence[Sample]] | None,
    fit: Callable[..., Result],
) -> Result:
    """Return the result for a streaming model: of its step as a function of inputs and states, with its variables."""
    steps, states = stream.unrolled(fitted)
    others = None if judged is None else stream.unrolled(judged)[0]
    inner = replace(recipe, float_tail=NO_TAIL, norms=Norms.INT8, keep_float=stream.named(recipe.keep_float))
    made = fit(stream.stateless(states), steps, inner, evaluation=others)
    whole = stamped(stream.restored(made.model), digest(recipe))
    figures = compare_steps(stream, whole, fitted if judged is None else judged, recipe.executor)
    report = number(made.report, stream.origins)
    tensors = tuple(tensor for tensor in report.comparison.tensors if tensor.index >= 0)
    comparison = replace(report.comparison, tensors=tensors)
    report = replace(report, recipe=recipe, comparison=comparison, check=check_steps(whole), streamed=figures)
    return Result(whole, report)


def fit_bodies(recipe: Recipe, progress: Progress | None, fit: Callable[..., Result]) -> Fit:
    """Return the quantization of loops' bodies by a recipe for the whole model."""
    norms = Norms.AUTO if recipe.norms is Norms.AUTO else Norms.INT8  # others need a normalization in each body
    inner = replace(
        recipe, float_tail=NO_TAIL, norms=norms, keep_float=(), runtimes=(), input_type=None, output_type=None
    )

    def fit_body(body: Model, samples: Sequence[Sample], *, number: int, count: int) -> Model:
        return fit(body, samples, inner, part_of(progress, f"loop {number + 1} of {count}", number, count)).model

    return fit_body


def without_auto_norms(recipe: Recipe) -> Recipe:
    """Return a recipe for a model with integer loops: 16 bits change the tensors that its `Task.reference` shares."""
    return replace(recipe, norms=Norms.INT8) if recipe.norms is Norms.AUTO else recipe
