"""Cards of models, interpreters and quantizations.

Cards of a model and of an interpreter.

Cards of a quantization, and of its inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tflq.engine.api.interpreter import Interpreter
from tflq.face.report.blocks import Brief, Headline, Listing, Report
from tflq.face.report.verbs.compare_texts import lead_text
from tflq.face.report.verbs.models import type_text
from tflq.face.report.verbs.quantize import details
from tflq.face.report.verbs.quantize_texts import check_style, check_text, methods_text, remark_texts, why_text
from tflq.face.report.wording import bytes_text, counted
from tflq.model.ir import Model, view
from tflq.quantization.recipe import Recipe
from tflq.quantization.result import QuantizationReport as Quantization
from tflq.quantization.result import Result
from tflq.quantization.samples import Calibration
from tflq.texts import quoted

#: Operator types, and inputs or outputs, that are named.
_NAMED = 4


def model_card(model: Model) -> Report:
    """Build the report of a model: its operators by type, its inputs and outputs."""
    graph = view(model) if model.subgraphs else None
    operators = () if graph is None else graph.ops
    types = Counter(op.builtin for op in operators).most_common()
    named = [f"{count} {op}" for op, count in types[:_NAMED]] + ["..."] * bool(types[_NAMED:])
    size = sum(buffer.data.size for buffer in model.buffers if buffer.data is not None)
    graphs = "" if len(model.subgraphs) == 1 else f", {counted(len(model.subgraphs), 'subgraph')}"
    what = f"Model: {counted(len(operators), 'operator')} ({', '.join(named)}), {bytes_text(size)} of constants{graphs}"
    where = "no graph" if graph is None else f"{_edges(model, graph.inputs)} -> {_edges(model, graph.outputs)}"
    then = "Next: tflq.inspect(model), tflq.Interpreter(model_content=model), tflq.save(model, path)"
    return Report("inspect", [Headline(what), Brief(where, then)])


def interpreter_card(interpreter: Interpreter) -> Report:
    """Build the report of an interpreter: its profile, its inputs and outputs, the calls of a run."""
    graph = view(interpreter.model)
    what = f"Interpreter: {counted(len(graph.ops), 'operator')} under profile {interpreter.profile.name}"
    where = f"{_edges(interpreter.model, graph.inputs)} -> {_edges(interpreter.model, graph.outputs)}"
    then = "Next: allocate_tensors(), set_tensor(index, array), invoke(), get_tensor(index)"
    return Report("inspect", [Headline(what), Brief(where, then)])


def _edges(model: Model, tensors: Sequence[int]) -> str:
    specs = [view(model).tensors[t] for t in tensors]
    named = [f"{quoted(spec.name or '')} {type_text(spec)} {list(spec.shape)}" for spec in specs[:_NAMED]]
    return ", ".join([*named, *["..."] * bool(specs[_NAMED:])]) or "nothing"


def quantization_card(report: Quantization) -> Report:
    """Build the report of how a model was quantized."""
    return _card(report, "", f"{why_text(report)} {methods_text(report.ranking[0].methods)}")


def result_card(result: Result) -> Report:
    """Build the report of a quantized model."""
    operators = counted(len(view(result.model).ops), "operator")
    then = "Next: .save(path), .report.ranking, .report.comparison, .model"
    return _card(result.report, f"Quantized model of {operators}, ", then)


def _card(report: Quantization, what: str, then: str) -> Report:
    verdict = Headline(f"{what}{report.recipe.mode_word}: {lead_text(report.comparison)}", check_style(report.check))
    remarks = Listing(list(remark_texts(report)), "warning", indent=0)
    return Report("quantize", [verdict, Brief(check_text(report.check), then), *details(report), remarks])


def recipe_card(recipe: Recipe) -> Report:
    """Build the report of a recipe: mode, candidates, bounds."""
    first, more = methods_text(recipe.candidates[0]), len(recipe.candidates) - 1
    kept = f"kept in float: {', '.join(recipe.keep_float)}" if recipe.keep_float else "no operator is kept in float"
    budget = "no budget" if recipe.budget is None else f"{recipe.budget}"
    judges = ", ".join(recipe.judges)
    what = f"Recipe: {recipe.mode_word}, judged under {judges} in {counted(recipe.turns, 'turn')}; {budget}"
    where = f"{counted(more + 1, 'candidate')}: {first}{f' and {more} more' if more else ''}; {kept}"
    return Report(
        "quantize", [Headline(what), Brief(where, "Next: tflq.quantize(model, calibration, recipe); .candidates")]
    )


def calibration_card(calibration: Calibration) -> Report:
    """Build the report of calibration data: its inputs, and how values are scaled."""
    scaling = calibration.scaling
    how = "as they are" if scaling is None else f"(stored - {list(scaling.mean)}) / {list(scaling.std)}"
    where = f"values are {how}; samples are read and checked when they are iterated"
    what = f"Calibration: samples for {', '.join(calibration.inputs)}"
    return Report("quantize", [Headline(what), Brief(where, "Next: tflq.quantize(model, calibration)")])
