"""Figures of a quantization: configurations, the budget, what operators cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from tflq.face.report.blocks import Bar, Bars, Figures, InText, Operator, Section, Table, Text
from tflq.face.report.graph.colouring import Colouring, scale
from tflq.face.report.html import parts
from tflq.face.report.html.charts import scatter
from tflq.face.report.numbers import short
from tflq.face.report.verbs.compare.figures import fidelity_colourings
from tflq.face.report.verbs.compare.texts import decibels
from tflq.face.report.verbs.quantize.methods import methods_text
from tflq.quantization.judge.budget import front
from tflq.quantization.judge.selection import Ranked
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.result import Report

#: Trials of a budget that text lists.
_LISTED = 8


def configuration_bars(report: Report) -> Bars:
    """Return a chart of the figure that ranks the configurations; nothing for one configuration."""
    known = not math.isnan(report.ranking[0].divergence)
    unit = "KL divergence, nats" if known else "signal-to-noise ratio, dB"
    bars = [_candidate(number, candidate, known=known) for number, candidate in enumerate(report.ranking)]
    return Bars("configuration", unit, bars if len(bars) > 1 else [])


def budget_sections(report: Report) -> Iterator[Section]:
    """Yield accuracy against size, for every number of operators that was spared, and which of them no other beats."""
    trials = [trial for trial in report.trials if math.isfinite(trial.sqnr)]
    if not trials:
        return
    taken, best = len(report.spared), front(trials)
    points = [(float(t.size), t.sqnr, "good" if t.spared == taken else "plain") for t in trials]
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
            "taken" if t.spared == taken else "" if t in best else "beaten by another",
        ]
        for t in trials
    ]
    caption = Markup("{}taken; n = {} trials").format(parts.key("good"), len(trials))
    head = InText([Text("What the budget buys, on held-out samples:")])
    table = Table(columns, rows, _LISTED, "... and {left} more (--json has them all)", indent=1)
    yield Section("budget", "What the budget buys", [head, Figures([parts.figure(chart, caption)]), table])


def _candidate(number: int, candidate: Ranked, *, known: bool) -> Bar:
    """Return a bar of a configuration's divergence, or else decibels; the chosen one has its own colour."""
    label = methods_text(candidate.methods)
    value = candidate.divergence if known else candidate.sqnr
    if candidate.score is None or math.isnan(value):
        return Bar(label, 0.0, "failed" if candidate.error else "not judged")
    return Bar(label, max(value, 0.0), f"{value:.3g}", "good" if number == 0 else "plain")


def _noise(sensitivity: Sensitivity) -> float:
    """Return the outputs' noise with one operator quantized, in parts per million of the signal."""
    return 1e6 * 10 ** (-sensitivity.sqnr / 10)


def quantize_colourings(report: Report) -> list[Colouring]:
    """Return colourings of the float model's operators by the fidelity of their results, and by their own cost."""
    return [*fidelity_colourings(report.comparison), *cost_colourings(report)]


def cost_colourings(report: Report) -> Iterator[Colouring]:
    """Yield a colouring of operators by their own cost, if it was measured."""
    if report.sensitivities:
        costs = {s.operator: _noise(s) for s in report.sensitivities}
        yield scale("what the operator costs alone, noise of the outputs", costs, "ppm")


def cost_bars(costs: Sequence[Sensitivity]) -> Bars:
    """Return a chart of the noise that each operator alone adds to the outputs."""
    unit = "noise of the outputs when only this operator is integer, parts per million of their power"
    rows = [Bar(Operator(s.operator, s.op), _noise(s), f"{short(_noise(s))} ppm") for s in costs]
    return Bars("operator, the most sensitive first", unit, rows)
