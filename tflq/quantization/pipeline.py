"""`quantize`: the whole way from a float model and calibration samples to an integer model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tflq.api.files import Source, load, save
from tflq.errors import ModelError, UndefinedResultError, UnsupportedError
from tflq.interpreter import make_plan
from tflq.ir import Model
from tflq.profiles import by_name
from tflq.quantization.assignment import Assignment, activation_params, assign, weight_params
from tflq.quantization.calibration import Calibration, CalibrationSource
from tflq.quantization.floats import FloatModel, prepared
from tflq.quantization.ranging import activation_ranges, weight_ranges
from tflq.quantization.recipe import Recipe
from tflq.quantization.rewrite import Rewritten, rewritten
from tflq.quantization.scheme import KERNELS, modes_of, scheme
from tflq.verification.cutting import operators_named


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A quantized model; `kept_float` says why operators of the float model stayed as they are, by index."""

    model: Model
    assignment: Assignment
    kept_float: Mapping[int, str]

    def save(self, path: str | os.PathLike[str]) -> bytes:
        """Write the model; the bytes written."""
        return save(self.model, path)


def quantize(
    model: Source | Model, calibration: CalibrationSource | Calibration, recipe: Recipe | None = None
) -> Result:
    """The quantized form of a float model."""
    recipe = recipe or Recipe()
    source = load(model)
    floats = prepared(source)
    kept = named(source, floats, recipe)
    ranging = recipe.candidates[0].ranging
    samples = Calibration(source, calibration)
    while True:
        modes, reasons = modes_of(floats, recipe.mode, kept)
        plan = scheme(floats, modes)
        weights = weight_params(plan, weight_ranges(plan, ranging.weights, samples))
        ranges = activation_ranges(plan, samples, ranging, weights)
        assignment = assign(plan, activation_params(plan, ranges, ranging.rule), weights, recipe)
        result = rewritten(assignment)
        refused = refusal(result)
        if refused is None:
            return Result(result.model, assignment, reasons)
        kept[refused[0]] = refused[1]


def named(source: Model, floats: FloatModel, recipe: Recipe) -> dict[int, str]:
    """The operators that a recipe keeps in float, as the prepared model counts them."""
    wanted = operators_named(source, recipe.keep_float)
    return {index: "asked for" for index, origin in enumerate(floats.origins) if origin in wanted}


def refusal(result: Rewritten) -> tuple[int, str] | None:
    """The first operator whose kernel does not take what it was given: the float model's index, and why."""
    try:
        make_plan(result.model, by_name(KERNELS))
    except (ModelError, UndefinedResultError, UnsupportedError) as error:
        origin = -1 if error.index is None else result.operators[error.index]
        if origin < 0:
            raise
        return origin, f"LiteRT's kernel does not take it: {error.reason or error}"
    return None
