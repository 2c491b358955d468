"""A quantization, and what it is made from, in three lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tflq.quantization.calibration import Calibration
from tflq.quantization.pipeline import Report, Result
from tflq.quantization.recipe.recipe import Recipe
from tflq.report.card import Card
from tflq.report.compare.lines import lead_text
from tflq.report.numbers import counted
from tflq.report.quantize.lines import check_style, check_text, estimate_texts, remark_texts, why_text
from tflq.report.quantize.methods import methods_text
from tflq.report.render.line import Line


def report_card(report: Report) -> Card:
    """How good the model is, whether it was verified, and how it was chosen."""
    return Card(
        f"{report.recipe.mode.value}: {lead_text(report.comparison)}",
        check_text(report.check),
        f"{why_text(report)} {methods_text(report.ranking[0].methods)}",
        check_style(report.check),
        lambda: map(Line, (*estimate_texts(report), *remark_texts(report))),
    )


def result_card(result: Result) -> Card:
    """How good the model is, whether it was verified, and how to keep it."""
    card = report_card(result.report)
    operators = counted(len(result.model.subgraphs[0].operators), "operator")
    then = "Next: .save(path), .report.ranking, .report.comparison, .model"
    return Card(f"Quantized model of {operators}, {card.what}", card.where, then, card.style, card.report)


def recipe_card(recipe: Recipe) -> Card:
    """Mode, candidates, bounds."""
    first, more = methods_text(recipe.candidates[0]), len(recipe.candidates) - 1
    kept = f"kept in float: {', '.join(recipe.keep_float)}" if recipe.keep_float else "no operator is kept in float"
    budget = "no budget" if recipe.budget is None else f"{recipe.budget}"
    judges = ", ".join(recipe.judges)
    return Card(
        f"Recipe: {recipe.mode.value}, judged under {judges} in {counted(recipe.turns, 'turn')}; {budget}",
        f"{counted(more + 1, 'candidate')}: {first}{f' and {more} more' if more else ''}; {kept}",
        "Next: tflq.quantize(model, calibration, recipe); .candidates",
    )


def calibration_card(calibration: Calibration) -> Card:
    """Which inputs the samples are for, how they are scaled, and how they are used."""
    scaling = calibration.scaling
    how = "as they are" if scaling is None else f"(stored - {list(scaling.mean)}) / {list(scaling.std)}"
    return Card(
        f"Calibration: samples for {', '.join(calibration.inputs)}",
        f"values are {how}; samples are read and checked when they are iterated",
        "Next: tflq.quantize(model, calibration)",
    )


CARDS: Mapping[str, Callable[[Any], Card]] = {
    "Calibration": calibration_card,
    "Recipe": recipe_card,
    "Report": report_card,
    "Result": result_card,
}
