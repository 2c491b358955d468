"""What each operator alone costs: the outputs' noise when only it is integer and all others compute in float."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tflq.errors import TflqError
from tflq.ir import Model, TensorType
from tflq.quantization.build.build import build
from tflq.quantization.build.task import Task
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.recipe.refining import Refining
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.modes import modes_of


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One operator of the float model; `sqnr` is that of the outputs in dB, `agreement` the share of equal top-1.

    `agreement` is None where the output is no row of scores.
    """

    operator: int
    op: str
    sqnr: float
    agreement: float | None


def sensitivities(source: Model, task: Task, judging: Iterable[Sample]) -> tuple[Sensitivity, ...]:
    """Quantize every operator that the recipe's mode makes integer alone; the most sensitive first.

    The outputs are compared with those of `source` on the samples `judging`. Weights are rounded to nearest:
    refinements act on all operators together. An operator whose kernel refuses what it alone is given is left out.
    """
    recipe = replace(task.recipe, input_type=TensorType.FLOAT32, output_type=TensorType.FLOAT32, runtimes=())
    plain = replace(task, recipe=recipe, methods=replace(task.methods, refining=Refining()), progress=None)
    modes, _ = modes_of(task.floats, recipe.mode, {})
    integer = [index for index, mode in enumerate(modes) if mode is not None]
    results = []
    for done, operator in enumerate(integer):
        task.tell("sensitivity", done, len(integer))
        others = {index: "the others" for index in range(len(modes)) if index != operator}
        try:
            built = build(replace(plain, kept_float=others))
        except TflqError:
            continue
        if operator in built.kept_float:
            continue
        comparison = compare_models(source, built.integer.model, judging)
        agreement = None if comparison.agreement is None else comparison.agreement.rate
        results.append(Sensitivity(operator, task.floats.op(operator), comparison.sqnr, agreement))
    return tuple(sorted(results, key=lambda s: s.sqnr))
