"""`tflq quantize` as a page: what was made and whether it is right, why so, what is lost where."""

from __future__ import annotations

import json
import math

import tflq
from tflq.quantization.judge.selection import Ranked
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.recipe.files import digest, document_of
from tflq.report.html.fidelity import fidelity
from tflq.report.html.page import rendered
from tflq.report.quantize.lines import (
    COLUMNS,
    SENSITIVITY_COLUMNS,
    Making,
    check_style,
    check_text,
    estimate_texts,
    fit_text,
    headline,
    next_step,
    ranking_row,
    remark_texts,
    sensitivity_row,
    why_text,
)


def quantize_page(making: Making) -> str:
    """The page, whole: nothing has to be loaded to show it."""
    report = making.report
    return rendered(
        "quantize.html",
        version=tflq.__version__,
        source=making.source,
        made=making.made,
        calibration=making.calibration,
        headline=headline(making),
        check=check_text(report.check),
        check_style=check_style(report.check),
        why=why_text(report),
        estimate=list(estimate_texts(report)),
        fit=fit_text(report),
        columns=COLUMNS,
        ranking=[ranking_row(candidate) for candidate in report.ranking],
        ranking_bars=[_candidate_bar(number, candidate) for number, candidate in enumerate(report.ranking, 1)],
        ranked_by="signal-to-noise ratio, dB" if math.isnan(report.ranking[0].divergence) else "divergence, nats",
        found=fidelity(report.comparison),
        sensitivity_columns=SENSITIVITY_COLUMNS,
        sensitivities=[sensitivity_row(s) for s in report.sensitivities],
        sensitivity_bars=[_cost_bar(s) for s in sorted(report.sensitivities, key=lambda s: s.operator)],
        remarks=list(remark_texts(report)),
        recipe=json.dumps(document_of(report.recipe), indent=2),
        digest=digest(report.recipe),
        next=next_step(making),
    )


def _candidate_bar(number: int, candidate: Ranked) -> tuple[str, float, str]:
    """What ranks it: its divergence, or decibels above 0 where there is none; the one that was taken stands out."""
    known = not math.isnan(candidate.divergence)
    value = candidate.divergence if known else min(max(candidate.sqnr, 0.0), 100.0)
    return str(number), value, "above" if number == 1 else "plain"


def _cost_bar(found: Sensitivity) -> tuple[str, float, str]:
    """Noise of the outputs by an operator alone, in parts per million of the signal."""
    return str(found.operator), 1e6 * 10 ** (-found.sqnr / 10), "plain"
