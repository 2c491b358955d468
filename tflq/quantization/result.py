"""The result of a quantization: the model, and the report of how it was built and how good it is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.engine.api.files import save
from tflq.model.ir import Model
from tflq.quantization.judge.comparison import Fidelities
from tflq.quantization.judge.journal import Ranked
from tflq.quantization.judge.runtimes import Agreed, RuntimeCheck
from tflq.quantization.judge.tails import Streamed, Tails
from tflq.quantization.judge.trials import Eights, Sensitivity, Trial, WideNorms, WinBack
from tflq.quantization.portable.targets import PortableOutcome
from tflq.quantization.recipe import Recipe
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.texts import Tabular, display_by


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about an operator of the float model: its index there, its name, and the text."""

    index: int
    op: str
    text: str


@display_by("cards:quantization_card")
@dataclass(frozen=True, slots=True, eq=False)
class QuantizationReport:
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
    comparison: Fidelities
    held_back: int
    check: RuntimeCheck
    kept_float: tuple[Remark, ...]
    notes: tuple[Remark, ...]
    spared: tuple[Remark, ...]
    sensitivities: tuple[Sensitivity, ...]
    outlying: tuple[int, ...]
    data: tuple[str, ...] = ()  # remarks about the calibration data
    interrupted: bool = False
    agreed: Agreed | None = None  # on the recipe's several runtimes; None for a single one
    trials: tuple[Trial, ...] = ()  # of a budget, by the number of operators that it spares
    portable: PortableOutcome | None = None  # None if the recipe does not ask for it
    tails: Tails | None = None  # treatments of outputs of several parts; None if there is nothing to treat
    norms: WideNorms | None = None  # normalizations with activations of 16 bits, or in float; None if there are none
    eights: Eights | None = None  # operators of mode int8x4 with weights of eight bits; None if there are none
    streamed: Streamed | None = None  # of a streaming model, over steps in a row
    wins_back: WinBack | None = None  # what one operator in float gives; None with a budget, or if that is little


@display_by("cards:result_card", "quantize:result_document", "ranking")
@dataclass(frozen=True, slots=True, eq=False)
class Result(Tabular):
    """A quantized model and its report."""

    model: Model
    report: QuantizationReport

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the model; return the number of bytes."""
        return save(self.model, path)


def number(report: QuantizationReport, origins: Sequence[int]) -> QuantizationReport:
    """Return the report with the operators of a rewritten float model numbered as in its source."""

    def moved(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
        return tuple(replace(remark, index=origins[remark.index]) for remark in remarks)

    won = report.wins_back
    return replace(
        report,
        comparison=report.comparison.numbered(origins),
        kept_float=moved(report.kept_float),
        notes=moved(report.notes),
        spared=moved(report.spared),
        eights=None if report.eights is None else report.eights.numbered(origins),
        wins_back=None if won is None else replace(won, operator=origins[won.operator]),
        sensitivities=tuple(replace(s, operator=origins[s.operator]) for s in report.sensitivities),
    )


def remarks(floats: FloatModel, texts: Mapping[int, str]) -> tuple[Remark, ...]:
    """Return remarks about operators of the prepared model, by their indices in the original one."""
    return tuple(Remark(floats.origins[i], floats.graph.op(i).name, text) for i, text in sorted(texts.items()))
