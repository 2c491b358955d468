"""The report of a comparison of two models: outputs, decisions, where noise begins and where it is worst."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.engine.api.subject import ModelFacts
from tflq.face.report.blocks import (
    Block,
    Brief,
    Code,
    Fold,
    Gap,
    InText,
    Next,
    OnPage,
    Report,
    Section,
    Styled,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.documents.shared import converter_texts
from tflq.face.report.names import short_name
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Strip
from tflq.face.report.verbs.compare.figures import confusion, course_figure, fidelity_graph, quality_style, tensor_bars
from tflq.face.report.verbs.compare.groups import figure_texts
from tflq.face.report.verbs.compare.ranges import ranges_blocks
from tflq.face.report.verbs.compare.runtimes import runtimes_blocks
from tflq.face.report.verbs.compare.texts import (
    COLUMNS,
    advice_texts,
    agreement_texts,
    column_texts,
    cut_texts,
    decibels,
    error_text,
    flip_texts,
    flips_text,
    lead_text,
    part_texts,
    range_texts,
    samples_text,
    tensor_row,
    unit_texts,
    where_texts,
    worst,
)
from tflq.quantization.judge.comparison import DAMAGED, Comparison
from tflq.quantization.judge.fidelity import Fidelity

#: Tensors that text lists unless all are asked for.
_WORST = 10
#: The ratio in dB from which a tensor is fine.
_FINE = 30.0


def compare_report(
    first: ModelFacts, second: ModelFacts, comparison: Comparison, *, all_tensors: bool = False
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
        about=(Code(second.path), size, Code(first.path), f" ({first.size:,} bytes)"),
        title=f"{lead_text(comparison)}: {second.path}",
    )


def compare_card(comparison: Comparison) -> Report:
    """Build the report of a comparison that names no files, with every tensor."""
    where = next(where_texts(comparison), "no tensor of the same name and shape between the inputs and the outputs")
    subject = f"Comparison over {samples_text(comparison.samples)}"
    blocks = _blocks(subject, comparison, all_tensors=True)
    title = "tensors in order: green from 30 dB, brown from 20 dB, red below"
    strip = Strip(title, list(map(_shade, comparison.tensors)))
    return Report("compare", [*blocks, strip, Brief(where, "Next: .agreement, .tensors, .outputs")])


def _shade(tensor: Fidelity) -> str:
    return "good" if tensor.sqnr >= _FINE else "warning" if tensor.sqnr >= DAMAGED else "bad"


def _blocks(subject: str, comparison: Comparison, all_tensors: bool) -> Iterator[Block]:
    lead = lead_text(comparison)
    yield Verdict(lead, subject=subject, headline=Styled(lead, quality_style(comparison)))
    yield OnPage(lambda _view: [course_figure(comparison)])
    yield from runtimes_blocks(comparison)
    yield from map(Text, comparison.remarks)
    yield from map(Text, unit_texts(comparison))
    yield from map(Text, column_texts(comparison))
    yield from map(Text, cut_texts(comparison))
    yield from map(Text, range_texts(comparison))
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


def _tensors(comparison: Comparison, all_tensors: bool) -> Iterator[Block]:
    count = len(comparison.tensors)
    chosen = comparison.tensors if all_tensors else worst(comparison, _WORST)
    if chosen:
        yield Gap()
    yield Table(COLUMNS, list(map(tensor_row, chosen)))
    if len(chosen) < count:
        yield Text(f"the worst {len(chosen)} of {count} tensors; --all lists all", "faint")


def outputs_section(comparison: Comparison, over: str = "") -> Section:
    """Return the section of the decisions, and on a page of the outputs; `over` names the samples."""
    agreement = comparison.agreement
    blocks: list[Block] = list(map(Text, agreement_texts(agreement)))
    if agreement is not None and agreement.flips:
        blocks.append(InText([Text(flips_text(agreement))]))
        flips = [Text(text) for text in flip_texts(agreement)]
        blocks.append(Fold(counted(len(flips), "flip"), flips))
    blocks.append(
        OnPage(lambda _view: [*confusion(agreement), Table(COLUMNS, list(map(tensor_row, comparison.outputs)))])
    )
    return Section("outputs", f"Outputs over {over or samples_text(comparison.samples)}", blocks)


def tensors_section(comparison: Comparison) -> Section:
    """Return the section of every operator's result, in execution order, for pages."""
    rows = list(map(tensor_row, comparison.tensors))
    table = Table(COLUMNS, rows, fold=counted(len(rows), "tensor"))
    ranges = ranges_blocks(comparison)
    return Section("tensors", "Tensors", [*map(Text, where_texts(comparison)), tensor_bars(comparison), *ranges, table])
