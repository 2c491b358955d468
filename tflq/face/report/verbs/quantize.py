"""The reports of `tflq quantize`: the configuration taken and why, its cost, the check; or methods of weights."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from shlex import quote

from markupsafe import Markup

from tflq.engine.api.files import ModelFacts
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Figures,
    Fold,
    Gap,
    Headline,
    InText,
    Listing,
    Next,
    Note,
    OnPage,
    OperatorBlock,
    Report,
    Section,
    TableBlock,
    Text,
    Verbatim,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.quantize import (
    BudgetTrialDocument,
    CheckDocument,
    ProofDocument,
    QuantizeDocument,
    QuantizeWeightsDocument,
    RankingDocument,
    WeightsRankingDocument,
)
from tflq.face.report.documents.shared import converter_texts
from tflq.face.report.graph.colouring import Colouring, scale
from tflq.face.report.html import page
from tflq.face.report.html.charts import scatter
from tflq.face.report.verbs.compare import (
    comparison_document,
    course_figure,
    fidelity_colourings,
    fidelity_graph,
    outputs_section,
    quality_style,
    tensors_section,
)
from tflq.face.report.verbs.compare_texts import COLUMNS as TENSOR_COLUMNS
from tflq.face.report.verbs.compare_texts import (
    advice_texts,
    column_texts,
    decibels,
    figure_texts,
    fixed_texts,
    part_texts,
    tensor_row,
    unit_texts,
    worst,
)
from tflq.face.report.verbs.quantize_texts import (
    Making,
    advice_document,
    advice_sections,
    agreement_document,
    budget_texts,
    by_difference,
    check_style,
    check_text,
    columns,
    configuration_names,
    eights_text,
    estimate_texts,
    fit_text,
    headline,
    judge_text,
    left_text,
    next_step,
    norms_text,
    nudging_text,
    outputs_text,
    plain_text,
    portable_document,
    portable_facts,
    portable_section,
    ranking_row,
    remark_texts,
    rows,
    sensitivity_row,
    size_text,
    stream_text,
    tail_sections,
    tail_text,
    untried_text,
    why_text,
    win_text,
)
from tflq.face.report.wording import counted, short
from tflq.quantization.judge.journal import Ranked, Score
from tflq.quantization.judge.runtimes import RuntimeCheck
from tflq.quantization.judge.trials import Sensitivity, front
from tflq.quantization.recipe_files import digest, document_of, plain
from tflq.quantization.result import QuantizationReport, Result
from tflq.quantization.result import QuantizationReport as Quantization
from tflq.quantization.weights.quantizing import JudgedMethod, WeightReport, WeightResult
from tflq.quantization.weights.recipe import weights_digest, weights_document_of


def quantize_document(making: Making) -> QuantizeDocument:
    """Return all figures of a quantization. `ranking[0]` was taken."""
    report = making.report
    return filled(
        QuantizeDocument,
        report,
        model=making.source,
        output=making.output,
        calibration=making.calibration,
        recipe=document_of(report.recipe),
        recipe_digest=digest(report.recipe),
        ranking=[_rank(candidate) for candidate in report.ranking],
        proof=_proof(report.ranking[0].proof),
        comparison=comparison_document(report.comparison),
        check=check_document(report.check),
        trials=_trials(report),
        runtimes=None if report.agreed is None else agreement_document(report.agreed),
        portable=portable_document(report.portable),
        advice=advice_document(making.advice),
        next=next_step(making),
    )


def result_document(result: Result) -> QuantizeDocument:
    """Return all figures of a quantization without its files."""
    unknown = ModelFacts("MODEL", 0, "")
    making = Making(unknown, unknown, "CALIBRATION", None, result)
    return {**quantize_document(making), "model": None, "output": None}


def _trials(report: QuantizationReport) -> list[BudgetTrialDocument]:
    best, taken = front(report.trials), len(report.spared)
    return [
        filled(BudgetTrialDocument, trial, taken=trial.spared == taken, beaten=trial not in best)
        for trial in report.trials
    ]


def _rank(candidate: Ranked) -> RankingDocument:
    score = candidate.score
    return {
        "methods": plain(candidate.methods),
        "sqnr": None if score is None else score.sqnr,
        "samples": None if score is None else score.samples,
        "ratios": {} if score is None else score.ratios,
        "divergence": _known(candidate.divergence),
        "differing": None if score is None else score.differing,
        "agreement": _known(candidate.agreement),
        "error": candidate.error or None,
        "left": None if candidate.left is None else left_text(candidate.left),
    }


def _proof(score: Score | None) -> ProofDocument | None:
    if score is None:
        return None
    share, ratio = score.promise or (None, None)
    same = None if score.divergences is None else score.same / score.samples
    return filled(ProofDocument, score, agreement=same, share=share, ratio=ratio)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def check_document(check: RuntimeCheck) -> CheckDocument:
    """Return the verification of a written model, or why there is none."""
    report = check.report
    if report is None:
        return {"verdict": None, "reason": str(check.error)}
    return filled(CheckDocument, report, reason=None, runtime=report.against)


#: Trials of a budget that text lists.
_LISTED = 8


def configuration_bars(report: QuantizationReport) -> Bars:
    """Return a chart of the figure that ranks the configurations; nothing for one configuration."""
    known = not math.isnan(report.ranking[0].divergence)
    unit = "KL divergence, nats (less is better)" if known else "signal-to-noise ratio, dB (more is better)"
    names = configuration_names(report.ranking)
    bars = [_candidate(name, candidate, known=known) for name, candidate in zip(names, report.ranking, strict=True)]
    bars = [replace(bar, style="good") if number == 0 and bar.value else bar for number, bar in enumerate(bars)]
    return Bars("configuration", unit, bars if len(bars) > 1 else [])


def budget_sections(report: QuantizationReport) -> Iterator[Section]:
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
    caption = Markup("{}taken; n = {} trials").format(page.key("good"), len(trials))
    head = InText([Text("What the budget buys, on held-out samples:")])
    table = TableBlock(columns, rows, _LISTED, "... and {left} more (--json has them all)", indent=1)
    yield Section("budget", "What the budget buys", [head, Figures([page.figure(chart, caption)]), table])


def _candidate(label: str, candidate: Ranked, *, known: bool) -> Bar:
    """Return a bar of a configuration's divergence, or else decibels."""
    value = candidate.divergence if known else candidate.sqnr
    if candidate.score is None or math.isnan(value):
        return Bar(label, 0.0, "failed" if candidate.error else "not judged")
    return Bar(label, max(value, 0.0), f"{value:.3g}")


def _noise(sensitivity: Sensitivity) -> float:
    """Return the outputs' noise with one operator quantized, in parts per million of the signal."""
    return 1e6 * 10 ** (-sensitivity.sqnr / 10)


def quantize_colourings(report: QuantizationReport) -> list[Colouring]:
    """Return colourings of the float model's operators by the fidelity of their results, and by their own cost."""
    return [*fidelity_colourings(report.comparison), *cost_colourings(report)]


def cost_colourings(report: QuantizationReport) -> Iterator[Colouring]:
    """Yield a colouring of operators by their own cost, if it was measured."""
    if report.sensitivities:
        costs = {s.operator: _noise(s) for s in report.sensitivities}
        yield scale("what the operator costs alone, noise of the outputs", costs, "ppm")


def cost_bars(costs: Sequence[Sensitivity]) -> Bars:
    """Return a chart of the noise that each operator alone adds to the outputs."""
    unit = "noise of the outputs when only this operator is integer, parts per million of their power"
    rows = [Bar(OperatorBlock(s.operator, s.op), _noise(s), f"{short(_noise(s))} ppm") for s in costs]
    return Bars("operator, the most sensitive first", unit, rows)


_RANKING_COLUMNS = (("scores dB", ">"), ("KL divergence", ">"), ("same top-1", ">"), ("configuration", "<"))
_SENSITIVITY_COLUMNS = (("#", ">"), ("operator", "<"), ("outputs dB", ">"), ("same top-1", ">"))
#: Configurations, tensors, and operators with a cost of their own, that text lists.
_TAKEN, _WORST, _SENSITIVE = 3, 3, 3


def quantize_report(making: Making) -> Report:
    """Build the report of a quantization. Its page draws the float model."""
    made_of = (
        CodeBlock(making.output.path),
        " computed from ",
        CodeBlock(making.source.path),
        " and ",
        CodeBlock(making.calibration),
    )
    title = f"{making.output.path}: {headline(making)}"
    return Report("quantize", list(_blocks(making)), about=made_of, title=title)


def _blocks(making: Making) -> Iterator[Block]:
    report = making.report
    yield Headline(headline(making), quality_style(report.comparison), subject=making.output.path)
    yield FactLine(size_text(making))
    yield from map(FactLine, converter_texts(making.source))
    yield FactLine(check_text(report.check), check_style(report.check))
    if making.advice is None:  # which has them among its own
        yield from (FactLine(f"calibration data: {text}", "warning") for text in report.data)
    yield from (FactLine(text, "good") for text in budget_texts(making))
    if tail_text(report.tails):
        yield FactLine(tail_text(report.tails), "good")
    if report.streamed is not None:
        yield FactLine(stream_text(report.streamed), "good")
    if report.norms is not None:
        yield FactLine(norms_text(report.norms), "good" if report.norms.after > report.norms.before else "")
    if report.eights is not None:
        yield FactLine(eights_text(report.eights), "good")
    if report.wins_back is not None:
        yield FactLine(win_text(report.wins_back))
    yield from portable_facts(report.portable)
    yield OnPage(lambda _view: [course_figure(report.comparison)])
    yield Gap()
    yield from advice_sections(making.advice)
    if untried_text(making):
        yield FactLine(untried_text(making), "warning")
    yield _choice(report)
    yield from tail_sections(report.tails)
    yield Gap()
    yield FactLine(fit_text(report), quality_style(report.comparison))
    yield from map(FactLine, figure_texts(report.comparison.figures))
    yield from map(FactLine, part_texts(report.comparison))
    texts = (unit_texts(report.comparison), column_texts(report.comparison), advice_texts(report.comparison))
    yield from (FactLine(text, "warning") for text in chain.from_iterable(texts))
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
        yield FactLine(win_text(report.wins_back))
    yield _choice(report)
    yield from losses(report)
    yield from _sensitivity(report)


def losses(report: Quantization) -> Iterator[Block]:
    """Yield the tensors with the lowest ratios."""
    lowest = worst(report.comparison, _WORST)
    if lowest:
        yield Text("Where most is lost:")
        yield TableBlock(TENSOR_COLUMNS, list(map(tensor_row, lowest)), indent=1)
        won = report.wins_back
        named = {*(tensor.index for tensor in lowest), *([] if won is None else [won.operator])}
        yield from map(Text, fixed_texts(report.comparison, named))


def _choice(report: Quantization) -> Section:
    count = counted(len(report.ranking), "configuration")
    rest = "... and {left} more (--json has them all)"
    names = configuration_names(report.ranking)
    ranking = [ranking_row(name, candidate) for name, candidate in zip(names, report.ranking, strict=True)]
    table = TableBlock(_RANKING_COLUMNS, ranking, _TAKEN, rest, count, indent=1)
    blocks: list[Block] = [
        Text(why_text(report)),
        configuration_bars(report),
        table,
        InText([Text(text) for text in [plain_text(report, _TAKEN)] if text]),
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
    table = TableBlock(columns(now), most, most=_WORST, rest=rest, fold=summary, indent=1)
    outputs = Text(outputs_text(now), "warning" if any(now.differing) else "good")
    yield Section("runtimes", "Where runtimes differ", [outputs, Text(nudging_text(report.agreed)), table])


def _sensitivity(report: Quantization) -> Iterator[Section]:
    costs = report.sensitivities
    if not costs:
        return
    rest = "... and {left} more (--json has them all)"
    fold = f"{counted(len(costs), 'operator')} as a table"
    table = TableBlock(_SENSITIVITY_COLUMNS, list(map(sensitivity_row, costs)), _SENSITIVE, rest, fold, indent=1)
    head = InText([Text("What each operator costs alone, all others in float:")])
    yield Section("sensitivity", "What each operator costs alone", [head, cost_bars(costs), table])


def _recipe(report: Quantization) -> Section:
    whole = Verbatim(json.dumps(document_of(report.recipe), indent=2))
    blocks: list[Block] = [
        Text(("SHA-256 ", CodeBlock(digest(report.recipe))), "facts"),
        Fold("the whole recipe", [whole]),
    ]
    return Section("recipe", "Recipe", blocks)


_METHODS = (("KL", ">"), ("logits", ">"), ("same token", ">"), ("method", "<"))
_WEIGHTS = (("role", "<"), ("shape", "<"), ("read by", ">"), ("form", "<"), ("name", "<"))
#: Weights that text lists.
_WEIGHTS_LISTED = 5


def weights_report(source: ModelFacts, output: ModelFacts, calibration: str, report: WeightReport) -> Report:
    """Build the report of a written model."""
    about = (CodeBlock(output.path), " computed from ", CodeBlock(source.path), " and ", CodeBlock(calibration))
    blocks = list(_weights_blocks(report, output.path))
    profile = report.recipe.profile
    steps = f"tflq session {quote(source.path)} {quote(output.path)} --between {profile} {profile}"
    blocks.append(Next([steps, f"tflq verify {quote(output.path)} --against {profile}"]))
    return Report("quantize", blocks, about=about, title=f"{output.path}: tflq quantize")


def weights_card(report: WeightReport) -> Report:
    """Build the report of a quantization that names no files."""
    return Report(
        "quantize", [*_weights_blocks(report, ""), Brief(check_text(report.check), "Next: .ranking, .layers, .check")]
    )


def weights_result_card(result: WeightResult) -> Report:
    """Build the report of a model with quantized weights."""
    brief = Brief(check_text(result.report.check), "Next: .save(path), .report.ranking, .model")
    return Report("quantize", [*_weights_blocks(result.report, ""), brief])


def _weights_blocks(report: WeightReport, path: str) -> Iterator[Block]:
    best, share = report.ranking[0], report.bytes_after / report.bytes_before
    text = f"logits {decibels(best.noise)}, the same token in {best.agreement:.1%} of {counted(best.steps, 'step')}"
    yield Headline(f"{text}, {share:.0%} of the size", check_style(report.check), subject=path)
    yield FactLine(f"{report.bytes_before:,} bytes before, {report.bytes_after:,} after")
    yield FactLine(check_text(report.check))
    if any("blocks" in weight.form for weight in report.layers):
        yield Note("LiteRT's reference kernels (litert-ref) read no scales of blocks and return zeros")
    steps = ", ".join(f"{count} of {name}" for name, count in report.steps.items())
    yield FactLine(f"fitted to {counted(report.windows, 'window')} of the text: steps {steps}")
    rows = [_method_row(method) for method in report.ranking]
    yield Section("methods", "Methods, judged on other windows", [TableBlock(_METHODS, rows)])
    weights = [[w.role, str(list(w.shape)), str(w.uses), w.form, w.name[-60:]] for w in report.layers]
    rest = "... and {left} more weights (--html FILE lists all)"
    yield Section("weights", "Weights", [TableBlock(_WEIGHTS, weights, most=_WEIGHTS_LISTED, rest=rest)])


def _method_row(judged: JudgedMethod) -> list[str]:
    return [f"{judged.divergence:.3g}", decibels(judged.noise), f"{judged.agreement:.1%}", str(judged.method)]


def weights_result_document(result: WeightResult) -> QuantizeWeightsDocument:
    """Return all figures of a quantization of weights without its files."""
    return weights_document(None, None, "CALIBRATION", result.report)


def weights_document(
    source: ModelFacts | None, output: ModelFacts | None, calibration: str, report: WeightReport
) -> QuantizeWeightsDocument:
    """Return all figures of a quantization of weights: `schemas/quantize-weights.schema.json`."""
    return filled(
        QuantizeWeightsDocument,
        report,
        model=source,
        output=output,
        calibration=calibration,
        recipe=weights_document_of(report.recipe),
        recipe_digest=weights_digest(report.recipe),
        ranking=[
            filled(
                WeightsRankingDocument, one, method=plain(one.method), noise=one.noise if one.noise < math.inf else None
            )
            for one in report.ranking
        ],
        check=check_document(report.check),
    )
