"""One configuration carried out: from a prepared float model and samples to an integer model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import ModelError, UndefinedResultError, UnsupportedError
from tflq.interpreter import make_plan
from tflq.profiles import by_name
from tflq.quantization.assignment import Assignment, activation_params, assign, weight_params
from tflq.quantization.biases import fitted_weights, raised
from tflq.quantization.floats import FloatModel
from tflq.quantization.observe import Observations, Progress, observe
from tflq.quantization.observers import Channels
from tflq.quantization.ranging import activation_ranges, weight_ranges
from tflq.quantization.recipe import Methods, Mode, Recipe
from tflq.quantization.refine.equalize import equalized
from tflq.quantization.refine.groups import channel_groups
from tflq.quantization.refine.refining import Refined, refined
from tflq.quantization.rewrite import Rewritten, rewritten
from tflq.quantization.runner import Sample
from tflq.quantization.scheme import KERNELS, modes_of, scheme


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """An integer model; `kept_float` says why operators of the float model stayed as they are, by index."""

    rewritten: Rewritten
    assignment: Assignment
    kept_float: Mapping[int, str]


def build(
    floats: FloatModel, samples: Iterable[Sample], recipe: Recipe, methods: Methods, kept: Mapping[int, str],
    progress: Progress | None = None, wide: Collection[int] = (),
) -> Built:  # fmt: skip
    """Carry out `methods`. `kept` operators stay in float; those that a kernel refuses join them. `wide` operators
    compute in mode int16x8 where they can.

    `samples` are iterated once for every method that looks at them.
    """
    floats = _equalized(floats, samples, methods, progress)
    ranging, refused = methods.ranging, dict(kept)
    while True:
        modes, reasons = modes_of(floats, recipe.mode, refused)
        if wide:
            others, _ = modes_of(floats, Mode.INT16X8, refused)
            modes = tuple(others[i] or mode if i in wide else mode for i, mode in enumerate(modes))
        plan = scheme(floats, modes)
        spanning = weight_params(plan, weight_ranges(plan, ranging.weights, samples))
        ranges = activation_ranges(plan, samples, ranging, spanning, progress)
        activations = activation_params(plan, ranges, ranging.rule)
        weights = fitted_weights(plan, activations, spanning)
        found = Refined(weights)
        if not methods.refining.changes_nothing:
            found = refined(plan, activations, weights, recipe, methods.refining, samples, progress)
        assignment = assign(plan, activations, found.weights, recipe, found.codes, found.biases)
        assignment = replace(assignment, notes=raised(spanning, weights))
        result = rewritten(assignment)
        refusal = _refusal(result)
        if refusal is None:
            return Built(result, assignment, reasons)
        refused[refusal[0]] = refusal[1]


def _equalized(
    floats: FloatModel, samples: Iterable[Sample], methods: Methods, progress: Progress | None
) -> FloatModel:  # fmt: skip
    groups = () if methods.equalize is None else channel_groups(floats)
    if methods.equalize is None or not groups:
        return floats
    tensors = dict.fromkeys(t for group in groups for t in group.tensors)
    seen = observe(floats.model, samples, Observations.begin(tensors, Channels()), progress)
    channels = {t: observer for t, (observer,) in seen.of.items() if isinstance(observer, Channels)}
    magnitudes = {t: np.maximum(-c.low, c.high) for t, c in channels.items()}
    return equalized(floats, magnitudes, methods.equalize)


def _refusal(result: Rewritten) -> tuple[int, str] | None:
    """The first operator whose kernel does not take what it was given: the float model's index, and why."""
    try:
        make_plan(result.model, by_name(KERNELS))
    except (ModelError, UndefinedResultError, UnsupportedError) as error:
        origin = -1 if error.index is None else result.operators[error.index]
        if origin < 0:
            raise
        return origin, f"LiteRT's kernel does not take it: {error.reason or error}"
    return None
