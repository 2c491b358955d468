"""Figures of a comparison for pages, by quantize and compare alike: outputs, decisions, tensors by their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from tflq.quantization.judge.agreement import Agreement
from tflq.quantization.judge.comparison import DAMAGED, Comparison
from tflq.quantization.judge.fidelity import Fidelity
from tflq.report.blocks import Bar
from tflq.report.compare.lines import (
    COLUMNS,
    agreement_texts,
    decibels,
    error_text,
    flip_texts,
    mean_error,
    samples_text,
    tensor_row,
    where_texts,
)
from tflq.report.graph.colouring import Colouring, ladder, scale
from tflq.report.html import parts
from tflq.report.html.charts import LEVELS
from tflq.report.names import short_name
from tflq.report.numbers import counted

#: Classes of a confusion matrix; of more it would be no picture.
_MOST_CLASSES = 60
#: Ratios between which tensors share a colour, dB. The second is where a tensor counts as damaged.
_RUNGS = (DAMAGED - 10, DAMAGED, DAMAGED + 10, DAMAGED + 20, DAMAGED + 30)


def quality_style(comparison: Comparison) -> str:
    """Return "good" if the outputs' ratio is at least DAMAGED dB, else "bad"."""
    return "good" if comparison.sqnr >= DAMAGED else "bad"


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


def fidelity_panels(comparison: Comparison) -> Mapping[int, Markup]:
    """Return notes on the results of each operator of the reference, by index."""
    said: dict[int, list[Markup]] = {}
    for tensor in comparison.tensors:
        style = "bad" if tensor.sqnr < DAMAGED else "good"
        text = f"{decibels(tensor.sqnr)}, {error_text(tensor)}, n = {tensor.elements:,} ({short_name(tensor.name)})"
        said.setdefault(tensor.index, []).append(parts.note(text, style))
    return {index: parts.together(*notes) for index, notes in said.items()}


def outputs_section(comparison: Comparison) -> Markup:
    """Decisions and outputs."""
    texts = [text for text in agreement_texts(comparison.agreement) if not text.startswith("flips")]
    flips = [] if comparison.agreement is None else flip_texts(comparison.agreement)
    return parts.section(
        "outputs",
        f"Outputs over {samples_text(comparison.samples)}",
        *map(parts.paragraph, texts),
        parts.details(counted(len(flips), "flip"), parts.listing(flips)) if flips else "",
        _confusion(comparison.agreement) if comparison.agreement is not None else "",
        parts.table(COLUMNS, map(tensor_row, comparison.outputs)),
    )


def _confusion(agreement: Agreement) -> Markup:
    """Return the confusion matrix: correct classes, or the reference's without labels, by the other model's classes."""
    classes = sorted({number for pair in agreement.confusion for number in pair})
    if not 1 < len(classes) <= _MOST_CLASSES:
        return Markup("")
    head = Markup("").join(Markup("<th scope=col>{}</th>").format(number) for number in classes)
    body = Markup("").join(
        Markup("<tr><th scope=row>{}</th>{}</tr>").format(row, _confusion_cells(agreement, row, classes))
        for row in classes
    )
    frame = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="confusion matrix"><table class="matrix"><thead><tr>'
        "<td></td>{}</tr></thead><tbody>{}</tbody></table></div>"
    )
    whose = "right class" if agreement.labelled else "the reference's class"
    return parts.figure(
        frame.format(head, body), f"rows: {whose}; columns: what the other model says; n = {agreement.samples:,}"
    )


def _confusion_cells(agreement: Agreement, row: int, classes: Sequence[int]) -> Markup:
    total = sum(agreement.confusion[row, column] for column in classes)
    cells = Markup("")
    for column in classes:
        count = agreement.confusion[row, column]
        shade = f"{'cool' if row == column else 'hot'}{-(-count * LEVELS // total)}" if count else "clear"
        cells += Markup('<td class="{}">{}</td>').format(shade, f"{count:,}" if count else "")
    return cells


def tensors_section(comparison: Comparison) -> Markup:
    """Return a section with the signal-to-noise ratio of every operator's result, in execution order."""
    bars = [_bar(tensor) for tensor in comparison.tensors]
    chart = parts.bars("operator", "signal-to-noise ratio of its result, dB", bars, full=2 * DAMAGED)
    caption = Markup("{}below {} dB").format(parts.key("above"), f"{DAMAGED:g}")
    return parts.section(
        "tensors",
        "Tensors",
        *map(parts.paragraph, where_texts(comparison)),
        parts.figure(chart, caption),
        parts.details(
            counted(len(comparison.tensors), "tensor"), parts.table(COLUMNS, map(tensor_row, comparison.tensors))
        ),
    )


def _bar(tensor: Fidelity) -> Bar:
    """Decibels above 0; tensors without noise are as long as the longest."""
    value = max(tensor.sqnr, 0.0)
    style = "above" if tensor.sqnr < DAMAGED else "plain"
    shown = decibels(tensor.sqnr) if math.isfinite(tensor.sqnr) else "no noise" if tensor.sqnr > 0 else "all noise"
    return Bar(parts.operator_link(tensor.index, tensor.op), value, shown, style)
