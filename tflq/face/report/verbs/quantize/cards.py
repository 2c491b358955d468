"""Cards of a quantization, and of its inputs."""

from __future__ import annotations

from tflq.face.report.blocks import Brief, Listing, Report, Verdict
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.texts import lead_text
from tflq.face.report.verbs.quantize.methods import methods_text
from tflq.face.report.verbs.quantize.report import details
from tflq.face.report.verbs.quantize.texts import check_style, check_text, remark_texts, why_text
from tflq.model.ir import view
from tflq.quantization.calibration import Calibration
from tflq.quantization.recipe.recipe import Recipe
from tflq.quantization.result import Report as Quantization
from tflq.quantization.result import Result


def quantization_card(report: Quantization) -> Report:
    """Build the report of how a model was quantized."""
    return _card(report, "", f"{why_text(report)} {methods_text(report.ranking[0].methods)}")


def result_card(result: Result) -> Report:
    """Build the report of a quantized model."""
    operators = counted(len(view(result.model).ops), "operator")
    then = "Next: .save(path), .report.ranking, .report.comparison, .model"
    return _card(result.report, f"Quantized model of {operators}, ", then)


def _card(report: Quantization, what: str, then: str) -> Report:
    verdict = Verdict(f"{what}{report.recipe.mode_word}: {lead_text(report.comparison)}", check_style(report.check))
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
        "quantize", [Verdict(what), Brief(where, "Next: tflq.quantize(model, calibration, recipe); .candidates")]
    )


def calibration_card(calibration: Calibration) -> Report:
    """Build the report of calibration data: its inputs, and how values are scaled."""
    scaling = calibration.scaling
    how = "as they are" if scaling is None else f"(stored - {list(scaling.mean)}) / {list(scaling.std)}"
    where = f"values are {how}; samples are read and checked when they are iterated"
    what = f"Calibration: samples for {', '.join(calibration.inputs)}"
    return Report("quantize", [Verdict(what), Brief(where, "Next: tflq.quantize(model, calibration)")])
