"""The result of a quantization: the model, and the report of how it was built and how good it is."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tflq.display import displayed_by
from tflq.engine.api.files import save
from tflq.model.ir import Model
from tflq.quantization.judge.budget import Trial
from tflq.quantization.judge.check import Check
from tflq.quantization.judge.comparison import Comparison
from tflq.quantization.judge.selection import Ranked
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.judge.several_runtimes import Agreed
from tflq.quantization.judge.win_back import WinBack
from tflq.quantization.portable.outcome import Outcome
from tflq.quantization.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about an operator of the float model: its index there, its name, and the text."""

    index: int
    op: str
    text: str


@displayed_by("quantize.cards:quantization_card")
@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The report of a quantization: how the model was built, and its quality.

    `ranking` holds all tried configurations, the chosen one first. `comparison` is with the float model, on the
    `held_back` samples; if that is 0, on the samples that the model was fitted to. `kept_float` gives the reason why
    operators of the float model stayed in float. `notes` describe changes that make values of others fit, and `spared`
    the wider modes that the budget gave to others. `sensitivities` are empty unless they are requested or there is a
    budget. `outlying` are samples far beyond the rest. If the search was `interrupted`, `ranking` holds the best
    candidate until then.
    """

    recipe: Recipe
    ranking: tuple[Ranked, ...]
    comparison: Comparison
    held_back: int
    check: Check
    kept_float: tuple[Remark, ...]
    notes: tuple[Remark, ...]
    spared: tuple[Remark, ...]
    sensitivities: tuple[Sensitivity, ...]
    outlying: tuple[int, ...]
    interrupted: bool = False
    agreed: Agreed | None = None  # on the recipe's several runtimes; None for a single one
    trials: tuple[Trial, ...] = ()  # of a budget, by the number of operators that it spares
    portable: Outcome | None = None  # None if the recipe does not ask for it
    wins_back: WinBack | None = None  # what one operator in float gives; None with a budget, or if that is little


@displayed_by("quantize.cards:result_card")
@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A quantized model and its report."""

    model: Model
    report: Report

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the model; return the number of bytes."""
        return save(self.model, path)
