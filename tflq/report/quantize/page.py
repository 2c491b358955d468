"""`tflq quantize` as a page: what was made and whether it is right, why so, what is lost where."""

from __future__ import annotations

import json
import math

from markupsafe import Markup

from tflq.quantization.judge.selection import Ranked
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.pipeline import Report
from tflq.quantization.recipe.files import digest, document_of
from tflq.report.blocks import Bar
from tflq.report.compare.lines import decibels
from tflq.report.graph.colouring import Colouring, scale
from tflq.report.graph.panels import by_operator
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html import parts
from tflq.report.html.charts import scatter
from tflq.report.html.fidelity import (
    fidelity_colourings,
    fidelity_panels,
    outputs_section,
    quality_style,
    tensors_section,
)
from tflq.report.html.page import page
from tflq.report.numbers import counted, short
from tflq.report.quantize.lines import (
    COLUMNS,
    SENSITIVITY_COLUMNS,
    Making,
    budget_texts,
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
from tflq.report.quantize.methods import methods_text
from tflq.report.quantize.runtimes import by_difference, columns, nudging_text, outputs_text, rows


def quantize_page(view: ModelView, making: Making) -> str:
    """The page of a quantization; `view` is of the float model that was quantized."""
    report = making.report
    source, output = parts.code(making.source.path), parts.code(making.output.path)
    return page(
        "quantize",
        headline(making),
        _choice(report),
        _budget(report),
        outputs_section(report.comparison),
        graph_section(view, quantize_colourings(report), by_operator(fidelity_panels(report.comparison))),
        _runtimes(report),
        tensors_section(report.comparison),
        _sensitivity(report),
        parts.section("remarks", "To know", parts.listing(remark_texts(report))),
        parts.next_section([next_step(making)]),
        parts.section(
            "recipe",
            "Recipe",
            parts.paragraph(parts.together("SHA-256", parts.code(digest(report.recipe))), "facts"),
            parts.details("the whole recipe", parts.commands([json.dumps(document_of(report.recipe), indent=2)])),
        ),
        title=f"{making.output.path}: {headline(making)}",
        facts=[
            parts.together(output, "made of", source, "and", parts.code(making.calibration)),
            _dotted(check_text(report.check), check_style(report.check)),
            _dotted(fit_text(report), quality_style(report.comparison)),
            *(_dotted(text, "good") for text in budget_texts(making)),
        ],
    )


def _dotted(said: str, style: str) -> Markup:
    return Markup('<span class="{}"><span class="dot" aria-hidden="true"></span>{}</span>').format(
        style, parts.text(said)
    )


def _choice(report: Report) -> Markup:
    known = not math.isnan(report.ranking[0].divergence)
    unit = "divergence, nats" if known else "signal-to-noise ratio, dB"
    bars = [_candidate(number, candidate, known=known) for number, candidate in enumerate(report.ranking)]
    return parts.section(
        "choice",
        "What was taken, and why",
        parts.paragraph(why_text(report)),
        parts.bars("configuration", unit, bars) if len(bars) > 1 else "",
        parts.details(counted(len(bars), "configuration"), parts.table(COLUMNS, map(ranking_row, report.ranking))),
        *map(parts.paragraph, estimate_texts(report)),
    )


def _runtimes(report: Report) -> Markup:
    """What runtimes make otherwise, at the outputs and operator by operator."""
    if report.agreed is None:
        return Markup("")
    now, most = report.agreed.portability, by_difference(report.agreed.portability)
    summary = f"{counted(len(most), 'operator')} that runtimes compute otherwise, by index in the written model"
    return parts.section(
        "runtimes",
        "Where runtimes differ",
        parts.paragraph(outputs_text(now)),
        parts.paragraph(nudging_text(report.agreed)),
        parts.details(summary, parts.table(columns(now), rows(most))) if most else "",
    )


def _budget(report: Report) -> Markup:
    """Accuracy against size, for every number of operators that was spared."""
    trials = [trial for trial in report.trials if math.isfinite(trial.sqnr)]
    if not trials:
        return Markup("")
    taken = len(report.spared)
    points = [(float(t.size), t.sqnr, "above" if t.spared == taken else "plain") for t in trials]
    ratios, sizes = [t.sqnr for t in trials], [t.size for t in trials]
    chart = scatter(
        points,
        "signal-to-noise ratio of the outputs against bytes of the file",
        (decibels(max(ratios)), decibels(min(ratios))),
        (f"{min(sizes):,} bytes", f"{max(sizes):,} bytes"),
        "size of the file; up: signal-to-noise ratio of the outputs",
    )
    columns = (("operators spared", ">"), ("bytes", ">"), ("dB", ">"), ("same top-1", ">"), ("", "<"))
    rows = [
        [
            str(t.spared),
            f"{t.size:,}",
            f"{t.sqnr:.1f}",
            "" if t.agreement is None else f"{t.agreement:.1%}",
            "taken" if t.spared == taken else "",
        ]
        for t in trials
    ]
    caption = Markup("{}taken; n = {} trials").format(parts.key("above"), len(trials))
    return parts.section("budget", "What the budget buys", parts.figure(chart, caption), parts.table(columns, rows))


def _candidate(number: int, candidate: Ranked, *, known: bool) -> Bar:
    """Return a bar of what ranks a configuration, divergence or else decibels; the chosen one stands out."""
    label = methods_text(candidate.methods)
    value = candidate.divergence if known else candidate.sqnr
    if candidate.score is None or math.isnan(value):
        return Bar(label, 0.0, "failed" if candidate.error else "not judged")
    return Bar(label, max(value, 0.0), f"{value:.3g}", "above" if number == 0 else "plain")


def _noise(sensitivity: Sensitivity) -> float:
    """Return the outputs' noise with one operator quantized, in parts per million of the signal."""
    return 1e6 * 10 ** (-sensitivity.sqnr / 10)


def quantize_colourings(report: Report) -> list[Colouring]:
    """Operators of the float model by the fidelity of their results, and by what they cost alone."""
    colourings = list(fidelity_colourings(report.comparison))
    if report.sensitivities:
        costs = {s.operator: _noise(s) for s in report.sensitivities}
        colourings.append(scale("what the operator costs alone, noise of the outputs", costs, "ppm"))
    return colourings


def _sensitivity(report: Report) -> Markup:
    if not report.sensitivities:
        return Markup("")
    unit = "noise of the outputs when only this operator is integer, parts per million of their power"
    bars = [
        Bar(parts.operator_link(s.operator, s.op), _noise(s), f"{short(_noise(s))} ppm") for s in report.sensitivities
    ]
    table = parts.table(SENSITIVITY_COLUMNS, map(sensitivity_row, report.sensitivities))
    return parts.section(
        "sensitivity",
        "What each operator costs alone",
        parts.bars("operator, the most sensitive first", unit, bars),
        parts.details(f"{counted(len(bars), 'operator')} as a table", table),
    )
