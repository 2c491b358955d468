"""What each operator alone costs: the outputs' noise when only it is integer and all others compute in float."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tflq.errors import TflqError
from tflq.ir import Model, TensorType
from tflq.quantization.building import build
from tflq.quantization.compare import compare_models
from tflq.quantization.floats import FloatModel
from tflq.quantization.observe import Progress
from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.refine.methods import Refining
from tflq.quantization.runner import Sample
from tflq.quantization.scheme import modes_of


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One operator of the float model; `sqnr` is that of the outputs in dB, `agreement` the share of equal top-1.

    `agreement` is None where the output is no row of scores.
    """

    operator: int
    op: str
    sqnr: float
    agreement: float | None


def sensitivities(
    source: Model, floats: FloatModel, fitting: Iterable[Sample], judging: Iterable[Sample], recipe: Recipe,
    methods: Methods, progress: Progress | None = None,
) -> tuple[Sensitivity, ...]:  # fmt: skip
    """Of every operator that the recipe's mode makes integer, the most sensitive first.

    Weights are rounded to nearest: refinements act on all operators together. An operator whose kernel refuses what it
    alone is given is left out.
    """
    alone = replace(recipe, input_type=TensorType.FLOAT32, output_type=TensorType.FLOAT32)
    plain = replace(methods, refining=Refining())
    modes, _ = modes_of(floats, recipe.mode, {})
    integer = [index for index, mode in enumerate(modes) if mode is not None]
    found = []
    for done, operator in enumerate(integer):
        if progress is not None:
            progress("sensitivity", done, len(integer))
        others = {index: "the others" for index in range(len(modes)) if index != operator}
        try:
            built = build(floats, fitting, alone, plain, others)
        except TflqError:
            continue
        if operator in built.kept_float:
            continue
        comparison = compare_models(source, built.rewritten.model, judging)
        agreement = None if comparison.agreement is None else comparison.agreement.rate
        found.append(Sensitivity(operator, floats.op(operator), comparison.sqnr, agreement))
    return tuple(sorted(found, key=lambda s: s.sqnr))
