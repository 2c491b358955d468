"""The report of a quantization: the configuration taken and why, what it costs, where, and the verification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from tflq.face.report.blocks import (
    Block,
    Code,
    Fact,
    Fold,
    Gap,
    InText,
    Listing,
    Next,
    OnPage,
    Report,
    Section,
    Table,
    Text,
    Verbatim,
    Verdict,
)
from tflq.face.report.documents.shared import converter_texts
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.figures import course_figure, fidelity_graph, quality_style
from tflq.face.report.verbs.compare.groups import figure_texts
from tflq.face.report.verbs.compare.report import outputs_section, tensors_section
from tflq.face.report.verbs.compare.texts import COLUMNS as TENSOR_COLUMNS
from tflq.face.report.verbs.compare.texts import advice_texts, column_texts, part_texts, tensor_row, unit_texts, worst
from tflq.face.report.verbs.quantize.advice import advice_sections
from tflq.face.report.verbs.quantize.figures import budget_sections, configuration_bars, cost_bars, cost_colourings
from tflq.face.report.verbs.quantize.portable import portable_facts, portable_section
from tflq.face.report.verbs.quantize.runtimes import by_difference, columns, nudging_text, outputs_text, rows
from tflq.face.report.verbs.quantize.tails import tail_sections, tail_text
from tflq.face.report.verbs.quantize.texts import (
    Making,
    budget_texts,
    check_style,
    check_text,
    eights_text,
    estimate_texts,
    fit_text,
    headline,
    judge_text,
    next_step,
    norms_text,
    ranking_row,
    remark_texts,
    sensitivity_row,
    size_text,
    stream_text,
    why_text,
    win_text,
)
from tflq.quantization.recipe.files import digest, document_of
from tflq.quantization.result import Report as Quantization

_RANKING_COLUMNS = (("scores dB", ">"), ("KL divergence", ">"), ("same top-1", ">"), ("configuration", "<"))
_SENSITIVITY_COLUMNS = (("#", ">"), ("operator", "<"), ("outputs dB", ">"), ("same top-1", ">"))
#: Configurations, tensors, and operators with a cost of their own, that text lists.
_TAKEN, _WORST, _SENSITIVE = 3, 3, 3


def quantize_report(making: Making) -> Report:
    """Build the report of a quantization. Its page draws the float model."""
    made_of = (Code(making.output.path), " computed from ", Code(making.source.path), " and ", Code(making.calibration))
    title = f"{making.output.path}: {headline(making)}"
    return Report("quantize", list(_blocks(making)), about=made_of, title=title)


def _blocks(making: Making) -> Iterator[Block]:
    report = making.report
    yield Verdict(headline(making), quality_style(report.comparison), subject=making.output.path)
    yield Fact(size_text(making))
    yield from map(Fact, converter_texts(making.source))
    yield Fact(check_text(report.check), check_style(report.check))
    if making.advice is None:  # which has them among its own
        yield from (Fact(f"calibration data: {text}", "warning") for text in report.data)
    yield from (Fact(text, "good") for text in budget_texts(making))
    if tail_text(report.tails):
        yield Fact(tail_text(report.tails), "good")
    if report.streamed is not None:
        yield Fact(stream_text(report.streamed), "good")
    if report.norms is not None:
        yield Fact(norms_text(report.norms), "good" if report.norms.after > report.norms.before else "")
    if report.eights is not None:
        yield Fact(eights_text(report.eights), "good")
    if report.wins_back is not None:
        yield Fact(win_text(report.wins_back))
    yield from portable_facts(report.portable)
    yield OnPage(lambda _view: [course_figure(report.comparison)])
    yield Gap()
    yield from advice_sections(making.advice)
    yield _choice(report)
    yield from tail_sections(report.tails)
    yield Gap()
    yield Fact(fit_text(report), quality_style(report.comparison))
    yield from map(Fact, figure_texts(report.comparison.figures))
    yield from map(Fact, part_texts(report.comparison))
    texts = (unit_texts(report.comparison), column_texts(report.comparison), advice_texts(report.comparison))
    yield from (Fact(text, "warning") for text in chain.from_iterable(texts))
    yield from budget_sections(report)
    yield outputs_section(report.comparison, judge_text(report))
    yield OnPage(lambda _view: [fidelity_graph(report.comparison, *cost_colourings(report))])
    yield from _runtimes(report)
    yield from portable_section(report.portable)
    yield InText(list(losses(report)))
    yield OnPage(lambda _view: [tensors_section(report.comparison)])
    yield from _sensitivity(report)
    yield Section("remarks", "To know", [Listing(list(remark_texts(report)), "warning", indent=0)])
    yield Next([next_step(making)])
    yield OnPage(lambda _view: [_recipe(report)])


def details(report: Quantization) -> Iterator[Block]:
    """Yield what a card has of the report: what wins back most, the ranking, and where most is lost."""
    if report.wins_back is not None:
        yield Fact(win_text(report.wins_back))
    yield _choice(report)
    yield from losses(report)
    yield from _sensitivity(report)


def losses(report: Quantization) -> Iterator[Block]:
    """Yield the tensors with the lowest ratios."""
    lowest = worst(report.comparison, _WORST)
    if lowest:
        yield Text("Where most is lost:")
        yield Table(TENSOR_COLUMNS, list(map(tensor_row, lowest)), indent=1)


def _choice(report: Quantization) -> Section:
    count = counted(len(report.ranking), "configuration")
    rest = "... and {left} more (--json has them all)"
    ranking = list(map(ranking_row, report.ranking))
    table = Table(_RANKING_COLUMNS, ranking, _TAKEN, rest, count, indent=1)
    blocks: list[Block] = [
        Text(why_text(report)),
        configuration_bars(report),
        table,
        *map(Text, estimate_texts(report)),
    ]
    return Section("choice", "What was taken, and why", blocks)


def _runtimes(report: Quantization) -> Iterator[Section]:
    """Yield where runtimes differ, at the outputs and operator by operator."""
    if report.agreed is None:
        return
    now = report.agreed.portability
    most = list(rows(by_difference(now)))
    summary = f"{counted(len(most), 'operator')} that runtimes compute otherwise, by index in the written model"
    rest = "... and {left} more (--json has them all)"
    table = Table(columns(now), most, most=_WORST, rest=rest, fold=summary, indent=1)
    outputs = Text(outputs_text(now), "warning" if any(now.differing) else "good")
    yield Section("runtimes", "Where runtimes differ", [outputs, Text(nudging_text(report.agreed)), table])


def _sensitivity(report: Quantization) -> Iterator[Section]:
    costs = report.sensitivities
    if not costs:
        return
    rest = "... and {left} more (--json has them all)"
    fold = f"{counted(len(costs), 'operator')} as a table"
    table = Table(_SENSITIVITY_COLUMNS, list(map(sensitivity_row, costs)), _SENSITIVE, rest, fold, indent=1)
    head = InText([Text("What each operator costs alone, all others in float:")])
    yield Section("sensitivity", "What each operator costs alone", [head, cost_bars(costs), table])


def _recipe(report: Quantization) -> Section:
    whole = Verbatim(json.dumps(document_of(report.recipe), indent=2))
    blocks: list[Block] = [Text(("SHA-256 ", Code(digest(report.recipe))), "facts"), Fold("the whole recipe", [whole])]
    return Section("recipe", "Recipe", blocks)
