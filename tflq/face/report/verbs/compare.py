"""The report of `tflq compare`, and its figures that `tflq quantize` shares: outputs, decisions, where noise begins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from shlex import quote

from markupsafe import Markup

from tflq.engine.api.files import ModelFacts
from tflq.face.report.blocks import (
    Badge,
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Figures,
    Fold,
    Gap,
    Graph,
    Headline,
    InText,
    Next,
    OnPage,
    OperatorBlock,
    Report,
    Section,
    Styled,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.quantize import (
    AccuracyDocument,
    AgreementDocument,
    CompareDocument,
    ComparisonDocument,
    PartDocument,
    WideDocument,
)
from tflq.face.report.documents.shared import converter_texts
from tflq.face.report.graph.colouring import Colouring, ladder, scale
from tflq.face.report.html import page
from tflq.face.report.html.charts import LEVELS, scatter
from tflq.face.report.matrices import Strip
from tflq.face.report.verbs.compare_texts import (
    COLUMNS,
    advice_texts,
    agreement_texts,
    column_texts,
    cut_texts,
    decibels,
    error_text,
    figure_texts,
    figures_document,
    flip_texts,
    flips_text,
    is_damaged,
    lead_text,
    part_texts,
    range_texts,
    runtimes_blocks,
    runtimes_document,
    samples_text,
    tensor_row,
    unit_texts,
    where_texts,
    worst,
)
from tflq.face.report.wording import counted, short_name
from tflq.quantization.judge.comparison import DAMAGED, Fidelities, Span
from tflq.quantization.judge.detections import MOST_VALUES, DecisionAgreement, Fidelity, OutputPart


def compare_document(
    comparison: Fidelities, first: ModelFacts | None = None, second: ModelFacts | None = None
) -> CompareDocument:
    """Return the document of a comparison of two files."""
    return filled(
        CompareDocument,
        comparison,
        reference=first,
        other=second,
        comparison=comparison_document(comparison),
        runtimes=runtimes_document(comparison),
    )


def comparison_document(comparison: Fidelities) -> ComparisonDocument:
    """Return all figures of a comparison; `first` and `worst` are positions in `tensors`."""
    return filled(
        ComparisonDocument,
        comparison,
        parts=[_part(part) for part in comparison.parts],
        wide=[filled(WideDocument, span, range=[span.low, span.high]) for span in comparison.wide],
        first=_position(comparison, comparison.first),
        worst=_position(comparison, comparison.worst),
        agreement=None if comparison.agreement is None else _agreement(comparison.agreement),
        figures=figures_document(comparison.figures),
        remarks=[*comparison.remarks, *unit_texts(comparison), *column_texts(comparison), *cut_texts(comparison)],
    )


def _position(comparison: Fidelities, tensor: Fidelity | None) -> int | None:
    return next((i for i, t in enumerate(comparison.tensors) if t is tensor), None)


def _part(part: OutputPart) -> PartDocument:
    values, given = (min(len(known), MOST_VALUES) for known in (part.values, part.given))
    return filled(PartDocument, part.fidelity, output=part.output, values=values, reference_values=given)


def _agreement(agreement: DecisionAgreement) -> AgreementDocument:
    before, after = agreement.accuracies or (0.0, 0.0)
    labelled = filled(AccuracyDocument, agreement, reference=before, other=after)
    divergence = agreement.divergence / agreement.samples
    return filled(
        AgreementDocument,
        agreement,
        divergence=None if math.isnan(divergence) else divergence,
        accuracy=None if agreement.accuracies is None else labelled,
    )


#: Most classes that a confusion matrix shows.
_MOST_CLASSES = 60
#: Tensors from which on their ratios are drawn as a course.
_COURSE_FROM = 3
#: Bounds of the colours, dB. Below the second, a tensor counts as damaged.
_RUNGS = (DAMAGED - 10, DAMAGED, DAMAGED + 10, DAMAGED + 20, DAMAGED + 30)


def quality_style(comparison: Fidelities) -> str:
    """Return "bad" if a part of the outputs is damaged as it is read, else "good"."""
    return "bad" if is_damaged(comparison) else "good"


def fidelity_colourings(comparison: Fidelities) -> tuple[Colouring, Colouring]:
    """Return colourings of the reference's operators by signal-to-noise ratio and by mean error of their results."""
    worst: dict[int, Fidelity] = {}
    for tensor in comparison.tensors:
        if tensor.index not in worst or tensor.sqnr < worst[tensor.index].sqnr:
            worst[tensor.index] = tensor
    ratios = {i: t.sqnr for i, t in worst.items()}
    bias = {i: abs(t.mean_error) for i, t in worst.items()}
    signed = {i: f"{t.mean_error:+.2g} mean error" for i, t in worst.items()}
    return (
        ladder("signal-to-noise ratio", ratios, "dB", _RUNGS, {i: decibels(t.sqnr) for i, t in worst.items()}),
        scale("mean error, by magnitude", bias, "", texts=signed),
    )


def fidelity_graph(comparison: Fidelities, *more: Colouring) -> Graph:
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


def tensor_bars(comparison: Fidelities) -> Bars:
    """Return a chart of the signal-to-noise ratio of every operator's result, the worst first."""
    rows = [_bar(tensor) for tensor in sorted(comparison.tensors, key=lambda tensor: tensor.sqnr)]
    unit = "signal-to-noise ratio of its result, dB"
    return Bars("operator, the worst first", unit, rows, full=2 * DAMAGED, key=("above", f"below {DAMAGED:g} dB"))


def course_figure(comparison: Fidelities) -> Figures:
    """Return the headline figure: the signal-to-noise ratio of every result, in order of execution."""
    tensors = [tensor for tensor in comparison.tensors if math.isfinite(tensor.sqnr)]
    if len(tensors) < _COURSE_FROM:
        return Figures([])
    points = [(float(k), t.sqnr, "above" if t.sqnr < DAMAGED else "plain") for k, t in enumerate(tensors)]
    ratios, first, last = [t.sqnr for t in tensors], tensors[0], tensors[-1]
    chart = scatter(
        points,
        "signal-to-noise ratio of the results, in order of execution",
        (decibels(max(ratios)), decibels(min(*ratios, 0.0))),
        (f"{first.index} {first.op}", f"{last.index} {last.op}"),
        "operators in order of execution; up: signal-to-noise ratio of the result (more is better)",
        floor=0.0,
    )
    caption = Markup("{}below {} dB; n = {} tensors").format(page.key("above"), f"{DAMAGED:g}", len(tensors))
    return Figures([page.figure(chart, caption)])


def confusion(agreement: DecisionAgreement | None) -> Iterator[Figures]:
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
    yield Figures([page.figure(frame.format(len(classes), whose, head, body), caption)])


def _confusion_cells(agreement: DecisionAgreement, row: int, classes: Sequence[int]) -> Markup:
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
    return Bar(OperatorBlock(tensor.index, tensor.op), tensor.sqnr if tensor.sqnr > -math.inf else 0.0, shown, style)


#: Rows that are shown before the rest is folded.
_SHOWN = 20
_ROW = Markup(
    '<tr><th scope="row">{}</th><td>{}{}</td><td class="number">{}</td><td class="number">{}</td>'
    '<td class="number">{}</td></tr>'
)
_HEAD = Markup(
    "<thead><tr><th scope=col>operator</th><th scope=col>upper: values in float; lower: range of the codes</th>"
    "<th scope=col>values</th><th scope=col>codes</th><th scope=col>cut off</th></tr></thead>"
)


def ranges_blocks(comparison: Fidelities) -> Iterator[Block]:
    """Yield the picture of the ranges of quantized tensors in order of execution; nothing if there are none."""
    spans = comparison.ranges
    if not spans:
        return
    caption = Markup("{}values; {}codes; {}values beyond them; each row has its own scale; n = {} tensors").format(
        page.key("plain"), page.key("good"), page.key("above"), len(spans)
    )
    yield Figures([page.figure(_drawn(spans[:_SHOWN]), caption)])
    if len(spans) > _SHOWN:
        rest = spans[_SHOWN:]
        yield Fold(f"and {counted(len(rest), 'more tensor')}", [Figures([page.figure(_drawn(rest), "")])])


def _drawn(spans: tuple[Span, ...]) -> Markup:
    body = Markup("").join(map(_row, spans))
    return Markup('<table class="bars" aria-label="ranges of values and codes">{}<tbody>{}</tbody></table>').format(
        _HEAD, body
    )


def _row(span: Span) -> Markup:
    low, high = min(span.low, span.seen[0], 0.0), max(span.high, span.seen[1], 0.0)
    room = (high - low) or 1.0

    def bar(begin: float, end: float, style: str) -> Markup:
        left, width = 100 * (begin - low) / room, 100 * max(end - begin, 0.0) / room
        return Markup('<span class="bar {}" style="display:block;margin-left:{:.1f}%;width:{:.1f}%"></span>').format(
            style, min(left, 99.5), max(min(width, 100 - left), 0.5)
        )

    beyond = cut_off(span)
    return _ROW.format(
        page.text(OperatorBlock(span.index, span.op)),
        bar(*span.seen, "above" if beyond else "plain"),
        bar(span.low, span.high, "good"),
        f"{span.seen[0]:.3g} to {span.seen[1]:.3g}",
        f"{span.low:.3g} to {span.high:.3g}",
        f"{beyond:.1%}" if beyond else "",
    )


def cut_off(span: Span) -> float:
    """Return the share of the width of the values that lies beyond the codes, without the half step at each end."""
    step = (span.high - span.low) / 255
    beyond = max(span.low - span.seen[0] - step / 2, 0.0) + max(span.seen[1] - span.high - step / 2, 0.0)
    width = span.seen[1] - span.seen[0]
    return beyond / width if width > 0 else 0.0


#: Tensors that text lists unless all are asked for.
_WORST = 10
#: The ratio in dB from which a tensor is fine.
_FINE = 30.0


def compare_report(
    first: ModelFacts, second: ModelFacts, comparison: Fidelities, *, all_tensors: bool = False
) -> Report:
    """Build the report of a comparison of `second` with `first`."""
    subject = f"{second.path} against {first.path}, {samples_text(comparison.samples)}"
    is_explained = any(range_texts(comparison))  # so that the structure is not at fault
    is_fine = comparison.first is None or is_explained
    steps = [] if is_fine or first.converter else [f"tflq diff {quote(first.path)} {quote(second.path)}"]
    size = f" ({second.size:,} bytes) against "
    return Report(
        "compare",
        [*_blocks(subject, comparison, all_tensors), *map(Text, converter_texts(first)), Next(steps)],
        about=(CodeBlock(second.path), size, CodeBlock(first.path), f" ({first.size:,} bytes)"),
        title=f"{lead_text(comparison)}: {second.path}",
    )


def compare_card(comparison: Fidelities) -> Report:
    """Build the report of a comparison that names no files, with every tensor."""
    where = next(where_texts(comparison), "no tensor of the same name and shape between the inputs and the outputs")
    subject = f"Comparison over {samples_text(comparison.samples)}"
    blocks = _blocks(subject, comparison, all_tensors=True)
    title = "tensors in order: green from 30 dB, brown from 20 dB, red below"
    strip = Strip(title, list(map(_shade, comparison.tensors)))
    return Report("compare", [*blocks, strip, Brief(where, "Next: .agreement, .tensors, .outputs")])


def _shade(tensor: Fidelity) -> str:
    return "good" if tensor.sqnr >= _FINE else "warning" if tensor.sqnr >= DAMAGED else "bad"


def _blocks(subject: str, comparison: Fidelities, all_tensors: bool) -> Iterator[Block]:
    lead = lead_text(comparison)
    yield Headline(lead, subject=subject, headline=Styled(lead, quality_style(comparison)))
    yield OnPage(lambda _view: [course_figure(comparison)])
    yield from runtimes_blocks(comparison)
    yield from map(Text, comparison.remarks)
    for texts in (unit_texts, column_texts, cut_texts, range_texts):
        yield from (FactLine(text, "warning") for text in texts(comparison))
    yield from map(Text, figure_texts(comparison.figures))
    yield from map(Text, part_texts(comparison))
    yield from map(Text, advice_texts(comparison))
    for output in comparison.outputs:
        yield InText([Text(f"output {short_name(output.name)}: SQNR {decibels(output.sqnr)}, {error_text(output)}")])
    yield outputs_section(comparison)
    yield OnPage(lambda _view: [fidelity_graph(comparison), tensors_section(comparison)])
    yield InText(list(map(Text, where_texts(comparison))))
    if comparison.tensors:
        yield InText(list(_tensors(comparison, all_tensors)))


def _tensors(comparison: Fidelities, all_tensors: bool) -> Iterator[Block]:
    count = len(comparison.tensors)
    chosen = comparison.tensors if all_tensors else worst(comparison, _WORST)
    if chosen:
        yield Gap()
    yield TableBlock(COLUMNS, list(map(tensor_row, chosen)))
    if len(chosen) < count:
        yield Text(f"the worst {len(chosen)} of {count} tensors; --all lists all", "faint")


def outputs_section(comparison: Fidelities, over: str = "") -> Section:
    """Return the section of the decisions, and on a page of the outputs; `over` names the samples."""
    agreement = comparison.agreement
    blocks: list[Block] = list(map(Text, agreement_texts(agreement)))
    if agreement is not None and agreement.flips:
        blocks.append(InText([Text(flips_text(agreement))]))
        flips = [Text(text) for text in flip_texts(agreement)]
        blocks.append(Fold(counted(len(flips), "flip"), flips))
    blocks.append(
        OnPage(lambda _view: [*confusion(agreement), TableBlock(COLUMNS, list(map(tensor_row, comparison.outputs)))])
    )
    return Section("outputs", f"Outputs over {over or samples_text(comparison.samples)}", blocks)


def tensors_section(comparison: Fidelities) -> Section:
    """Return the section of every operator's result, in execution order, for pages."""
    rows = list(map(tensor_row, comparison.tensors))
    table = TableBlock(COLUMNS, rows, fold=counted(len(rows), "tensor"))
    ranges = ranges_blocks(comparison)
    return Section("tensors", "Tensors", [*map(Text, where_texts(comparison)), tensor_bars(comparison), *ranges, table])
