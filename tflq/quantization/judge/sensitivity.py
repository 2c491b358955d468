"""The cost of each operator alone: the outputs' noise if only it is integer and all others compute in float."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from tflq.errors import TflqError
from tflq.model.ir import Model, TensorType
from tflq.quantization.build.build import build
from tflq.quantization.build.task import Task
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.judge.journal import Journal, entry_key
from tflq.quantization.recipe.refining import Refining
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.modes import modes_of


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One operator of the float model, and what the outputs lose if it alone is integer.

    `sqnr` is that of the outputs, or of their worst part, in dB. `agreement` is the share of equal top-1, None if the
    output is not a row of scores.
    """

    operator: int
    op: str
    sqnr: float
    agreement: float | None


def sensitivities(
    source: Model, task: Task, judging: Iterable[Sample], journal: Journal | None = None
) -> tuple[Sensitivity, ...]:
    """Quantize each operator that the recipe's mode makes integer alone; return the most sensitive first.

    The outputs are compared with those of `source` on the samples `judging`. Weights are rounded to nearest, since
    refinements act on all operators together. An operator is skipped if its kernel refuses its operands. Work in the
    `journal` is not repeated.
    """
    notes = journal or Journal(None, {})
    recipe = replace(task.recipe, input_type=TensorType.FLOAT32, output_type=TensorType.FLOAT32, runtimes=())
    plain = replace(task, recipe=recipe, methods=replace(task.methods, refining=Refining()), progress=None)
    modes, _ = modes_of(task.floats, recipe.mode, {})
    integer = [index for index, mode in enumerate(modes) if mode is not None]
    results = list[Sensitivity]()
    for done, operator in enumerate(integer):
        task.tell("sensitivity", done, len(integer))
        key = entry_key(f"sensitivity {operator}", task.methods)
        entry = notes.get(key)
        if entry is None:
            found = _alone(source, plain, operator, range(len(modes)), judging)
            entry = {} if found is None else asdict(found)
            notes.note(key, entry)
        if entry:
            results.append(Sensitivity(**entry))
    return tuple(sorted(results, key=lambda s: s.sqnr))


def _alone(
    source: Model, plain: Task, operator: int, operators: Iterable[int], judging: Iterable[Sample]
) -> Sensitivity | None:
    """Return the cost of one operator; None if its kernel refuses its operands."""
    others = {index: "the others" for index in operators if index != operator}
    try:
        built = build(replace(plain, kept_float=others))
    except TflqError:
        return None
    if operator in built.kept_float:
        return None
    comparison = compare_models(source, built.integer.model, judging)
    agreement = None if comparison.agreement is None else comparison.agreement.rate
    return Sensitivity(operator, plain.floats.graph.op(operator).name, comparison.leading, agreement)
