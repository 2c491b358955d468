"""Figures of a comparison on the pages of `compare` and `quantize`: decisions, and operators by their noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from tflq.face.report.blocks import Badge, Bar, Bars, Block, Figures, Graph, Operator, Text
from tflq.face.report.graph.colouring import Colouring, ladder, scale
from tflq.face.report.html import parts
from tflq.face.report.html.charts import LEVELS, scatter
from tflq.face.report.names import short_name
from tflq.face.report.verbs.compare.groups import is_damaged
from tflq.face.report.verbs.compare.texts import decibels, error_text, mean_error
from tflq.quantization.judge.agreement import Agreement
from tflq.quantization.judge.comparison import DAMAGED, Comparison
from tflq.quantization.judge.fidelity import Fidelity

#: Most classes that a confusion matrix shows.
_MOST_CLASSES = 60
#: Tensors from which on their ratios are drawn as a course.
_COURSE_FROM = 3
#: Bounds of the colours, dB. Below the second, a tensor counts as damaged.
_RUNGS = (DAMAGED - 10, DAMAGED, DAMAGED + 10, DAMAGED + 20, DAMAGED + 30)


def quality_style(comparison: Comparison) -> str:
    """Return "bad" if a part of the outputs is damaged as it is read, else "good"."""
    return "bad" if is_damaged(comparison) else "good"


def fidelity_colourings(comparison: Comparison) -> tuple[Colouring, Colouring]:
    """Return colourings of the reference's operators by signal-to-noise ratio and by mean error of their results."""
    worst: dict[int, Fidelity] = {}
    for tensor in comparison.tensors:
        if tensor.index not in worst or tensor.sqnr < worst[tensor.index].sqnr:
            worst[tensor.index] = tensor
    ratios = {i: t.sqnr for i, t in worst.items()}
    bias = {i: abs(mean_error(t)) for i, t in worst.items()}
    signed = {i: f"{mean_error(t):+.2g} mean error" for i, t in worst.items()}
    return (
        ladder("signal-to-noise ratio", ratios, "dB", _RUNGS, {i: decibels(t.sqnr) for i, t in worst.items()}),
        scale("mean error, by magnitude", bias, "", texts=signed),
    )


def fidelity_graph(comparison: Comparison, *more: Colouring) -> Graph:
    """Return the reference, with notes on the results of each operator; `more` are further colourings."""
    panels: dict[int, list[Block]] = {}
    for tensor in comparison.tensors:
        text = (
            f"SQNR {decibels(tensor.sqnr)}, {error_text(tensor)}, n = {tensor.elements:,} ({short_name(tensor.name)})"
        )
        note = Text(Badge(text, "bad" if tensor.sqnr < DAMAGED else "good"))
        panels.setdefault(tensor.index, []).append(note)
    focus = comparison.first or comparison.worst
    index = None if focus is None or focus.index < 0 else focus.index
    return Graph((*fidelity_colourings(comparison), *more), panels, index)


def tensor_bars(comparison: Comparison) -> Bars:
    """Return a chart of the signal-to-noise ratio of every operator's result, the worst first."""
    rows = [_bar(tensor) for tensor in sorted(comparison.tensors, key=lambda tensor: tensor.sqnr)]
    unit = "signal-to-noise ratio of its result, dB"
    return Bars("operator, the worst first", unit, rows, full=2 * DAMAGED, key=("above", f"below {DAMAGED:g} dB"))


def course_figure(comparison: Comparison) -> Figures:
    """Return the headline figure: the signal-to-noise ratio of every result, in order of execution."""
    tensors = [tensor for tensor in comparison.tensors if math.isfinite(tensor.sqnr)]
    if len(tensors) < _COURSE_FROM:
        return Figures([])
    points = [(float(k), t.sqnr, "above" if t.sqnr < DAMAGED else "plain") for k, t in enumerate(tensors)]
    ratios, first, last = [t.sqnr for t in tensors], tensors[0], tensors[-1]
    chart = scatter(
        points,
        "signal-to-noise ratio of the results, in order of execution",
        (decibels(max(ratios)), decibels(min(ratios))),
        (f"{first.index} {first.op}", f"{last.index} {last.op}"),
        "operators in order of execution; up: signal-to-noise ratio of the result",
    )
    caption = Markup("{}below {} dB; n = {} tensors").format(parts.key("above"), f"{DAMAGED:g}", len(tensors))
    return Figures([parts.figure(chart, caption)])


def confusion(agreement: Agreement | None) -> Iterator[Figures]:
    """Yield the confusion matrix: correct classes, or the reference's without labels, by the other model's classes."""
    if agreement is None:
        return
    classes = sorted({number for pair in agreement.confusion for number in pair})
    if not 1 < len(classes) <= _MOST_CLASSES:
        return
    head = Markup("").join(Markup("<th scope=col>{}</th>").format(number) for number in classes)
    body = Markup("").join(
        Markup("<tr><th scope=row>{}</th>{}</tr>").format(row, _confusion_cells(agreement, row, classes))
        for row in classes
    )
    frame = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="confusion matrix"><table class="matrix"><thead><tr>'
        "<td></td><th scope=colgroup colspan={}>class of the other model</th></tr>"
        "<tr><th scope=col>{}</th>{}</tr></thead><tbody>{}</tbody></table></div>"
    )
    whose = "right class" if agreement.labelled else "the reference's class"
    caption = f"rows: {whose}; columns: class of the other model; n = {agreement.samples:,}"
    yield Figures([parts.figure(frame.format(len(classes), whose, head, body), caption)])


def _confusion_cells(agreement: Agreement, row: int, classes: Sequence[int]) -> Markup:
    total = sum(agreement.confusion[row, column] for column in classes)
    cells = Markup("")
    for column in classes:
        count = agreement.confusion[row, column]
        shade = f"{'cool' if row == column else 'hot'}{-(-count * LEVELS // total)}" if count else "clear"
        cells += Markup('<td class="{}">{}</td>').format(shade, f"{count:,}" if count else "")
    return cells


def _bar(tensor: Fidelity) -> Bar:
    """Return a bar of decibels, to the left below 0; a tensor without noise has the longest bar."""
    style = "above" if tensor.sqnr < DAMAGED else "plain"
    shown = decibels(tensor.sqnr) if math.isfinite(tensor.sqnr) else "no noise" if tensor.sqnr > 0 else "all noise"
    return Bar(Operator(tensor.index, tensor.op), tensor.sqnr if tensor.sqnr > -math.inf else 0.0, shown, style)
