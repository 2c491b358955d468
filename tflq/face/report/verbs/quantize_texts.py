"""Statements about a quantization, each in one line, and rows of tables: advice, portability, runtimes, tails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from tflq.comparison.results import Verdict
from tflq.engine.api.files import ModelFacts
from tflq.errors import RuntimeMissing
from tflq.face.report.blocks import Block, Columns, Listing, Section, TableBlock, Text
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.quantize import (
    AdviceDocument,
    BeforeNudgingDocument,
    NudgeDocument,
    PortableDocument,
    RuntimesDocument,
    TrialDocument,
)
from tflq.face.report.verbs.compare_texts import (
    confidence_text,
    decibels,
    group_text,
    groups_text,
    is_damaged,
    lost_text,
    quality_text,
    samples_text,
)
from tflq.face.report.verbs.models import type_text
from tflq.face.report.verbs.prove import STYLES, claim_text, counts_text, profiles_text
from tflq.face.report.wording import counted, listed, runtime_text
from tflq.model.ir import roots, view
from tflq.proof import Word
from tflq.quantization.advice import Advice, Measured
from tflq.quantization.judge.detections import Fidelity
from tflq.quantization.judge.journal import Left, Ranked
from tflq.quantization.judge.runtimes import Agreed, RuntimeCheck
from tflq.quantization.judge.tails import APART, NONE, WIDE, Streamed, Tail, Tails
from tflq.quantization.judge.trials import Eights, Sensitivity, WideNorms, WinBack
from tflq.quantization.portable.nudging import OperatorDifferences, Portability
from tflq.quantization.portable.targets import PortableOutcome
from tflq.quantization.quarters import FEW
from tflq.quantization.recipe import (
    PRESETS,
    BiasCorrection,
    Methods,
    Mode,
    Norms,
    RangeRule,
    RangeTarget,
    Ranging,
    Refining,
    Rounding,
    Search,
    Solving,
    WatchOrder,
)
from tflq.quantization.result import QuantizationReport, Remark, Result
from tflq.quantization.samples import Scaling


def advice_sections(advice: Advice | None) -> Iterator[Section]:
    """Yield the section of the advice; nothing if none was asked for."""
    if advice is None:
        return
    blocks: list[Block] = [Listing([f"calibration data: {text}" for text in advice.data], "warning", indent=0)]
    blocks.append(Text(conclusion_text(advice)))
    tried = [trial for trial in advice.trials if not trial.error]
    blocks.append(TableBlock(_columns(advice), [_row(advice, row) for row in (advice.written, *tried)], indent=1))
    blocks += [Text(f"{option_text(t)} is refused: {t.error}", "warning") for t in advice.trials if t.error]
    yield Section("advice", "What wins losses back", blocks)


#: The ratio, in dB, below which a part of the outputs is worth more work.
_WEAK = 30.0


def untried_text(making: Making) -> str:
    """Return what --advise would try, if the worst part of the outputs is below _WEAK dB; else nothing."""
    comparison = making.report.comparison
    weakest, ratio = comparison.weakest, comparison.leading
    if weakest is not None:
        ratio = min(ratio, (weakest if isinstance(weakest, Fidelity) else weakest.fidelity).sqnr)
    if making.advice is not None or not making.untried or not ratio < _WEAK:
        return ""
    words = ", ".join(f"`{' '.join(map(quote, options))}`" for options in making.untried)
    what = "The outputs have" if weakest is None else "The worst part of the outputs has"
    return f"{what} {decibels(ratio)}: --advise would try {words}, and say what each wins back"


def plain_text(report: QuantizationReport, listed_rows: int) -> str:
    """Return the figures of plain min-max ranges, as converters take them; nothing if a listed row has them."""
    ranks = [candidate.methods for candidate in report.ranking]
    if Methods() not in ranks[listed_rows:]:
        return ""
    place = ranks.index(Methods(), listed_rows)
    sqnr, divergence, same, _ = ranking_row("", report.ranking[place])
    figures = ((sqnr, "scores {} dB"), (divergence, "KL divergence {}"), (same, "same top-1 {}"))
    known = [form.format(value) for value, form in figures if value]
    return f"Plain {methods_text(Methods())}, place {place + 1}: {', '.join(known) or 'no scores'}"


def conclusion_text(advice: Advice) -> str:
    """Return the best option with what it gives and costs, or that none helps."""
    tried = counted(len(advice.trials), "option")
    if not advice.worth:
        return f"Of {tried} tried, none wins back 0.5 dB or a tenth of a percent, over {samples_text(advice.samples)}"
    best = advice.worth[0]
    added = best.size - advice.written.size
    bytes_ = f"{abs(added):,} bytes {'more' if added >= 0 else 'less'}"
    gained = f"{_figure(advice.written)} becomes {_figure(best)}"
    return f"Of {tried} tried, {option_text(best)} wins back most: {gained}, for {bytes_}; add it to the same command"


def option_text(trial: Measured) -> str:
    """Return the words to add to the command."""
    return " ".join(map(quote, trial.options)) or "as written"


def _figure(row: Measured) -> str:
    first = f"accuracy {row.accuracy:.2%}, " if row.accuracy is not None else ""
    metrics = "".join(f"{name} {value:.4g}, " for name, value in row.metrics[:1])
    return f"{first}{metrics}{decibels(row.sqnr)}"


def _columns(advice: Advice) -> Columns:
    labelled = [("accuracy", ">")] if advice.written.accuracy is not None else []
    same = [("same top-1", ">")] if advice.written.agreement is not None else []
    metrics = [(name, ">") for name, _ in advice.written.metrics]
    price = [("bytes", ">"), ("in float", ">"), ("in 16 bits", ">")]
    return (("option", "<"), *labelled, *same, *metrics, ("dB", ">"), *price)


def _row(advice: Advice, row: Measured) -> list[str]:
    cells = [option_text(row)]
    if advice.written.accuracy is not None:
        cells.append("" if row.accuracy is None else f"{row.accuracy:.2%}")
    if advice.written.agreement is not None:
        cells.append("" if row.agreement is None else f"{row.agreement:.2%}")
    values = dict(row.metrics)
    cells += [f"{values[name]:.4g}" if name in values else "" for name, _ in advice.written.metrics]
    ratio = decibels(row.sqnr).removesuffix(" dB")
    return [*cells, ratio, f"{row.size:,}", str(row.floats), str(row.wides)]


def advice_document(advice: Advice | None) -> AdviceDocument | None:
    """Return the advice as a document; None if none was asked for."""
    if advice is None:
        return None
    trials = [_document(advice, trial) for trial in advice.trials]
    return filled(AdviceDocument, advice, written=_document(advice, advice.written), trials=trials)


def _document(advice: Advice, row: Measured) -> TrialDocument:
    return filled(TrialDocument, row, wins=bool(row.options) and not row.error and advice.gain(row) > 0)


def methods_text(methods: Methods) -> str:
    """Return the methods in the order in which they act; defaults are left out."""
    steps = [] if methods.equalize is None else [f"equalize {methods.equalize:g}"]
    return ", ".join([*steps, *_ranging(methods.ranging), *_refining(methods.refining)])


def configuration_names(ranking: Sequence[Ranked]) -> list[str]:
    """Return a short name for each configuration; equal ones get numbers."""
    names = list[str]()
    for candidate in ranking:
        refining = candidate.methods.refining
        words = ["equalized"] * (candidate.methods.equalize is not None) + [candidate.methods.ranging.watch.value]
        words += [f"+ {refining.rounding.value}"] * (refining.rounding != Rounding.NEAREST)
        names.append(" ".join([*words, *["+ bias"] * (refining.bias != BiasCorrection.NONE)]))
    return [f"{name} {names[: k + 1].count(name)}" if names.count(name) > 1 else name for k, name in enumerate(names)]


def left_text(left: Left) -> str:
    """Return when and why a configuration was dropped."""
    own = "its ranges alone " if left.ranges_alone else ""
    when = f"in the heat of {left.samples} samples"
    if left.turns:
        when = "after the first turn" if left.turns == 1 else f"after {left.turns} turns"
    return f"{own}lost {left.ratio:.1f} times as much as the best {when}"


def _ranging(ranging: Ranging) -> Iterator[str]:
    yield ranging.watch.value
    if ranging.activations is not None:
        yield f"activations {_search(ranging.activations)}"
    if ranging.weights is not None:
        yield f"weights {_search(ranging.weights)}"
    if ranging.rule != RangeRule.NUDGE:
        yield f"rule {ranging.rule.value}"
    if ranging.order != WatchOrder.FLOAT:
        yield ranging.order.value
    if ranging.two_passes:
        yield "two passes"


_TARGETS = {RangeTarget.VALUES: "", RangeTarget.OUTPUT: " of outputs", RangeTarget.SCORES: ", scores by KL divergence"}


def _search(search: Search) -> str:
    text = search.objective.value
    text += _TARGETS[search.target]
    return text if search.solver == Solving.GRID else f"{text} by {search.solver.value}"


def _refining(refining: Refining) -> Iterator[str]:
    if refining.rounding != Rounding.NEAREST:
        yield refining.rounding.value
    if refining.bias != BiasCorrection.NONE:
        yield f"{refining.bias.value} bias correction"
    if refining.match_inputs:
        yield "inputs matched"
    if refining.match_variance:
        yield "variance matched"


_REWRITES = (("operators", ">"), ("operator", "<"), ("becomes", "<"), ("accuracy", "<"), ("bytes", ">"))
_OBSTACLES = (("#", ">"), ("operator", "<"), ("why", "<"), ("instead", "<"))
#: Rows of obstacles that text lists.
_MOST = 8


def portable_facts(outcome: PortableOutcome | None) -> Iterator[Text]:
    """Yield how far the model is proved portable; nothing if the recipe does not ask for it."""
    if outcome is None:
        return
    proof = outcome.proof
    head = f"{profiles_text(proof)}, {counted(len(proof.operators), 'operator')}: {counts_text(proof.counts)}"
    yield Text(f"portable: {head}", STYLES[proof.word])
    yield Text(claim_text(proof), "good" if proof.word == Word.EQUAL else "warning")
    if proof.refused:
        names = ", ".join(refusal.profile for refusal in proof.refused)
        yield Text(f"not covered, they refuse the model: {names}", "warning")


def portable_section(outcome: PortableOutcome | None) -> Iterator[Section]:
    """Yield what was rewritten, and what keeps the model from being portable."""
    if outcome is not None and (outcome.rewrites or outcome.obstacles):
        yield Section("portable", "What makes it portable", [*_rewrites(outcome), *_obstacles(outcome)])


def _rewrites(outcome: PortableOutcome) -> Iterator[TableBlock]:
    together: dict[tuple[str, str, str], list[int]] = {}
    for rewrite in outcome.rewrites:
        together.setdefault((rewrite.op, rewrite.becomes, rewrite.cost), []).append(rewrite.bytes)
    rows = [(str(len(sizes)), op, becomes, cost, f"{sum(sizes):,}") for (op, becomes, cost), sizes in together.items()]
    if rows:
        yield TableBlock(_REWRITES, rows, fold=counted(len(outcome.rewrites), "rewritten operator"), indent=1)


def _obstacles(outcome: PortableOutcome) -> Iterator[TableBlock]:
    rows = [(str(o.index), o.op, o.why, o.instead) for o in outcome.obstacles]
    if rows:
        yield TableBlock(_OBSTACLES, rows, most=_MOST, rest="... and {left} more (--json has them all)", indent=1)


def portable_document(outcome: PortableOutcome | None) -> PortableDocument | None:
    """Return rewrites, obstacles and the certificate's content; None if the recipe does not ask for it."""
    if outcome is None:
        return None
    return filled(PortableDocument, outcome, certificate=outcome.proof.certificate().document)


def outputs_text(portability: Portability) -> str:
    """Return how many elements of the outputs differ on each runtime from the first."""
    first, *others = portability.runtimes
    differing = ", ".join(f"{count:,} on {name}" for name, count in zip(others, portability.differing, strict=True))
    over = f"over {counted(portability.samples, 'held-out sample')}"
    return f"Other than on {first}: {differing} of {portability.elements:,} elements of the outputs, {over}"


def nudging_text(agreed: Agreed) -> str:
    """Return how many elements operators alone compute otherwise, and how many scales were nudged for it."""
    now = f"Operators on the same inputs make {agreed.portability.total:,} elements otherwise"
    if not agreed.nudges:
        return f"{now}; no scale was nudged: none within 0.5 % does better on these samples"
    return f"{now}, {agreed.before.total:,} before {counted(len(agreed.nudges), 'scale')} moved by up to 0.5 %"


def columns(portability: Portability) -> tuple[tuple[str, str], ...]:
    """Return the columns of a table of operators of the written model."""
    return ("#", ">"), ("operator", "<"), ("elements", ">"), *((name, ">") for name in portability.runtimes[1:])


def rows(operators: Sequence[OperatorDifferences]) -> Iterator[list[str]]:
    """Yield a row for each operator: how many elements each runtime has otherwise."""
    for o in operators:
        yield [str(o.index), o.op, f"{o.elements:,}", *(f"{count:,}" for count in o.differing)]


def by_difference(portability: Portability) -> list[OperatorDifferences]:
    """Return the operators that runtimes make otherwise, those with the greatest share of their elements first."""
    differing = [o for o in portability.operators if any(o.differing)]
    return sorted(differing, key=lambda o: -max(o.differing) / o.elements)


def agreement_document(agreed: Agreed) -> RuntimesDocument:
    """Return all figures; operators are those of the written model."""
    before = filled(BeforeNudgingDocument, agreed.before)
    nudges = [filled(NudgeDocument, nudge) for nudge in agreed.nudges]
    return filled(RuntimesDocument, agreed.portability, before_nudging=before, nudges=nudges)


_COLUMNS = (("treatment", "<"), ("operators", ">"), ("bytes", ">"), ("multiply-accumulates", ">"), ("outputs", "<"))
#: Treatments that text lists.
_LISTED = 8
#: The option that asks for a treatment.
_OPTIONS = {APART: "--split-outputs", NONE: "--float-tail none"}


def tail_text(tails: Tails | None) -> str:
    """Return what the float tail is, what it wins back and what it costs; nothing if there is none."""
    plain = None if tails is None else next((t for t in tails.tried if t.name == NONE), None)
    if tails is None or plain is None or tails.taken in ("", NONE):
        return ""
    best = tails.best
    won = ", ".join(
        f"{group_text(name, best.ratios[name])} instead of {_before(name, ratio)}"
        for name, ratio in plain.ratios.items()
        if name in best.ratios
    )
    return (
        f"float tail: {counted(best.operators, 'operator')} from {best.first} {best.op} on compute in float, as one "
        f"scale would lose parts of the outputs: {won}, for {best.size - plain.size:,} bytes more and {best.share:.2%} "
        "of the multiply-accumulates"
    )


def _before(name: str, ratio: float) -> str:
    return group_text(name, ratio).removeprefix(f"{name} ").removeprefix("off by ").removesuffix(" of their size")


def tail_sections(tails: Tails | None) -> Iterator[Section]:
    """Yield the treatments that were tried, with what each gives on held-back samples and costs."""
    if tails is None or len(tails.tried) < 2:
        return
    rows = [
        _tails_row(tail, is_taken=tail.name == tails.taken) for tail in sorted(tails.tried, key=lambda tail: tail.loss)
    ]
    rest = "... and {left} more (--json has them all)"
    table = TableBlock(_COLUMNS, rows, _LISTED, rest, counted(len(rows), "treatment"), indent=1)
    head = Text("Treatments of the outputs, by the first configuration, on samples that it was not fitted to:")
    yield Section("tails", "Treatments of the outputs", [head, table])


def _tails_row(tail: Tail, *, is_taken: bool) -> list[str]:
    name = tail.name + (": taken" if is_taken else f" ({_option(tail)})" if _option(tail) else "")
    count = str(tail.operators) if tail.operators else ""
    return [name, count, f"{tail.size:,}", f"{tail.share:.2%}" if tail.operators else "", groups_text(tail.ratios)]


def _option(tail: Tail) -> str:
    return "" if tail.name == WIDE else _OPTIONS.get(tail.name, f"--float-tail {tail.first}")


#: The samples of the next step: calibration data would judge a model by what it was fitted to.
OTHER = "OTHER_SAMPLES"
#: Operators that a remark names.
_REMARKS = 5
#: Number of configurations from which on more of them do not help.
_MANY = len(PRESETS["best"].candidates)


@dataclass(frozen=True, slots=True, eq=False)
class Making:
    """A quantization: source and output file, the calibration data's path, how it was read, the result, advice.

    `untried` are the options that advice would try, if there is none.
    """

    source: ModelFacts
    output: ModelFacts
    calibration: str
    scaling: Scaling | None
    result: Result
    bgr: bool = False
    advice: Advice | None = None
    untried: tuple[tuple[str, ...], ...] = ()

    @property
    def report(self) -> QuantizationReport:
        """The quantization's report: its recipe, ranking, comparison and check."""
        return self.result.report


def headline(making: Making) -> str:
    """Return what is lost of the outputs, if a part is, then the figure of the whole."""
    lost = lost_text(making.report.comparison)
    return f"{lost}; {_texts_figure(making)}" if lost else _texts_figure(making)


def _texts_figure(making: Making) -> str:
    """Return one figure of quality: accuracy, else top-1 agreement with its interval, else the outputs' ratio in dB.

    Samples that nothing was fitted to count, where there are any.
    """
    report, comparison = making.report, making.report.comparison
    agreement, score = comparison.agreement, report.ranking[0].score
    if agreement is not None and agreement.accuracies is not None:
        before, after = agreement.accuracies
        interval = _interval(agreement.labelled, agreement.correct[1])
        return f"accuracy {after:.1%}{interval}, {before:.1%} in float"
    is_classifier = score is not None and score.divergences is not None
    if agreement is None or not is_classifier:
        return f"{quality_text(comparison)}, over {judge_text(report)}"
    which = "held-out" if report.held_back else "fitted to"
    same, count = agreement.samples - len(agreement.flips), agreement.samples
    if not report.held_back and score is not None and len(report.ranking) > 1:
        same, count, which = score.same, score.samples, "cross-validated"
    return f"same top-1 as in float in {same / count:.1%}{_interval(count, same)}, {which}"


def _interval(count: int, hits: int) -> str:
    return f" of {samples_text(count)} ({confidence_text(hits, count)})"


def size_text(making: Making) -> str:
    """Return the mode, the types of inputs and outputs, and the size before and after."""
    model = making.result.model
    graph = view(model, next((root.subgraph for root in roots(model) if model.subgraphs[root.subgraph].inputs), 0))
    into, out = (
        ", ".join(dict.fromkeys(type_text(graph.tensors[t]) for t in e)) for e in (graph.inputs, graph.outputs)
    )
    before, after = making.source.size, making.output.size
    mode = making.report.recipe.mode_word
    return f"{mode}, {into} in, {out} out, {before:,} to {after:,} bytes ({after / before:.0%})"


def win_text(won: WinBack) -> str:
    """Return the operator that gains most in float, the option that leaves it there, and what that gives."""
    bytes_ = f"{abs(won.added):,} bytes {'more' if won.added >= 0 else 'less'}"
    return (
        f"gains most in float, of {counted(won.tried, 'operator')} tried: {won.operator} {won.op}; "
        f"--keep-float {won.operator} gives outputs of {decibels(won.sqnr)}, "
        f"{won.gained:.1f} dB more, for {bytes_}, in this configuration"
    )


def norms_text(norms: WideNorms) -> str:
    """Return what normalizations in another form than 8 bits give, and what they cost."""
    is_float = norms.form is Norms.FLOAT
    form = "are in float" if is_float else "have activations of 16 bits, which XNNPACK does not speed up"
    others = "int16 keeps them integer" if is_float else "float is faster on CPUs"
    return (
        f"{counted(len(norms.operators), 'operator')} of normalizations {form}: {decibels(norms.after)} instead of "
        f"{decibels(norms.before)} on held-out samples, for {norms.added:,} bytes more (--norms {others}, int8 "
        "for 8 bits)"
    )


def eights_text(eights: Eights) -> str:
    """Return how many operators keep weights of eight bits, what that gives, and what it costs."""
    return (
        f"weights of {len(eights.operators)} of {counted(eights.candidates, 'operator')} keep eight bits, because they "
        f"lose most by four: {decibels(eights.after)} instead of {decibels(eights.before)} on held-out samples, for "
        f"{eights.added:,} bytes more (--eight-bits 0 for four bits alone)"
    )


def stream_text(streamed: Streamed) -> str:
    """Return how close a streaming model stays over steps in a row."""
    one = streamed.sequences == 1
    return (
        f"{counted(streamed.variables, 'variable')} with integer values; over {counted(streamed.steps, 'step')} "
        f"{'in a row' if one else f'of {streamed.sequences} sequences'}, each model from its own states: "
        f"{decibels(streamed.sqnr)} (other figures: with the float model's states; "
        "outputs are counted first, then variables)"
    )


def why_text(report: QuantizationReport) -> str:
    """Return how the configuration was chosen."""
    if report.interrupted:
        return "Interrupted. The best configuration until then, fitted to three quarters of the samples:"
    if len(report.ranking) == 1:
        return "The only configuration of the recipe:"
    by = "dB" if math.isnan(report.ranking[0].divergence) else "KL divergence"
    few = report.comparison.samples < FEW and not report.held_back
    if report.agreed is not None:
        by += " on all runtimes (ties: by how far these agree)"
    elif by != "dB":
        by += " (ties: by dB)"
    judged = "the samples that they were fitted to" if few else "held-out samples"
    return f"Best of {len(report.ranking)} by {by}, on {judged}:"


def estimate_texts(report: QuantizationReport) -> Iterator[str]:
    """Yield what to expect on new samples, to which nothing was fitted."""
    best = report.ranking[0]
    score = best.proof or best.score
    if score is None:
        return
    figures = groups_text(score.ratios) if score.groups else f"scores {decibels(score.sqnr)}"
    judges = "that judged no configuration" if best.proof else "that judged the configurations"
    text = f"Expect of other samples: {figures} (of {samples_text(score.samples)} {judges})"
    if score.divergences is not None:
        interval = confidence_text(score.same, score.samples)
        text += f", same top-1 in {score.same / score.samples:.1%} ({interval})"
    elif best.proof is not None and score.promise is not None:
        share, ratio = score.promise
        text += f"; {share:.0%} of them keep {decibels(ratio)} or more each (95 % confidence)"
    yield text
    beyond = report.comparison.records
    if not report.held_back and beyond:
        yield (
            f"About {beyond / report.comparison.samples:.0%} of other samples reach beyond all of these in some tensor "
            "and may be cut off there: their noise has no bound, and a few can decide the mean"
        )


def fit_text(report: QuantizationReport) -> str:
    """Return how close the outputs of the written model are."""
    return f"As written: {quality_text(report.comparison)} over the {judge_text(report)}"


def judge_text(report: QuantizationReport) -> str:
    """Return the samples on which the written model is compared with the float model."""
    count = report.comparison.samples
    return counted(count, "held-out sample") if report.held_back else f"{samples_text(count)} fitted to"


def budget_texts(making: Making) -> Iterator[str]:
    """Yield that the budget is met, with the value reached for each bound; nothing without a budget."""
    report, budget = making.report, making.report.recipe.budget
    if budget is None:
        return
    agreement, spared = report.comparison.agreement, len(report.spared)
    said = []
    if budget.least_sqnr is not None:
        said.append(f"outputs {decibels(report.comparison.leading)} (at least {budget.least_sqnr:g} dB)")
    if budget.least_agreement is not None and agreement is not None:
        said.append(f"same top-1 in {agreement.rate:.2%} (at least {budget.least_agreement:.2%})")
    if budget.most_bytes is not None:
        said.append(f"{making.output.size:,} bytes (at most {budget.most_bytes:,})")
    if budget.most_share is not None:
        said.append(f"at most {budget.most_share:.2%} of the multiply-accumulates spared")
    word = report.recipe.spared.value
    if spared:
        yield f"budget met: {', '.join([*said, counted(spared, 'operator') + f' spared, in {word}'])}"
    else:
        yield f"budget met by the recipe alone, no operator is spared: {', '.join(said)}"


def ranking_row(name: str, candidate: Ranked) -> list[str]:
    """Return a row: a configuration's figures on the held-out samples, then its name and, below it, its methods."""
    recipe, left = methods_text(candidate.methods), f": left, {left_text(candidate.left)}" if candidate.left else ""
    what = "\n".join(
        [name + (left or (f": {candidate.error}" if candidate.error else "")), *[f"  {recipe}"] * (recipe != name)]
    )
    if candidate.score is None:
        return ["failed" if candidate.error else "", "", "", what]
    same = "" if math.isnan(candidate.agreement) else f"{candidate.agreement:.1%}"
    divergence = "" if math.isnan(candidate.divergence) else f"{candidate.divergence:.2g}"
    return [decibels(candidate.sqnr).removesuffix(" dB"), divergence, same, what]


def sensitivity_row(sensitivity: Sensitivity) -> list[str]:
    """Return a row: an operator, and the outputs' ratio and agreement with it alone quantized."""
    same = "" if sensitivity.agreement is None else f"{sensitivity.agreement:.1%}"
    return [str(sensitivity.operator), sensitivity.op, decibels(sensitivity.sqnr).removesuffix(" dB"), same]


def check_text(check: RuntimeCheck) -> str:
    """Return whether LiteRT gives the same bits as tflq, or why that is unknown."""
    report = check.report
    if report is None:
        return f"not verified: {check.error}"
    runtime = runtime_text(report.against)
    where = f"{report.compared:,} elements of {len(report.operators)} operators, tflq against {runtime}"
    return {
        Verdict.SAME: f"verified: the same bits, {where}",
        Verdict.CLOSE: f"verified: float operators are close as promised, all else the same bits, {where}",
        Verdict.DIFFERS: f"NOT the same bits: {report.differing:,} of {where}",
        Verdict.INCOMPLETE: f"verified in part: nothing differs, {where}",
        Verdict.NOTHING: f"NOT verified: nothing was compared, {where}",
    }[report.verdict]


def check_style(check: RuntimeCheck) -> str:
    """Return the style of the verification's result: good, bad or warning."""
    if check.report is None:
        return "warning" if isinstance(check.error, RuntimeMissing) else "bad"
    return {Verdict.SAME: "good", Verdict.CLOSE: "good", Verdict.DIFFERS: "bad"}.get(check.report.verdict, "warning")


def remark_texts(report: QuantizationReport) -> Iterator[str]:
    """Yield which operators stay in float, were changed or spared, and which samples are outliers."""
    yield from _remarks("stays in float", report.kept_float)
    yield from _remarks("changed to fit", report.notes)
    yield from _remarks("spared by the budget", report.spared)
    if report.outlying:
        outlying = listed(list(map(str, report.outlying)), _REMARKS, last="; and ")
        yield f"calibration samples far beyond the others, more than ten times the median: {outlying}"


def _remarks(what: str, remarks: Sequence[Remark]) -> Iterator[str]:
    """Yield one line for each distinct remark, with its operators."""
    by_text: dict[str, list[Remark]] = {}
    for remark in remarks:
        by_text.setdefault(remark.text, []).append(remark)
    for text, operators in by_text.items():
        names = listed([f"{o.index} {o.op}" for o in operators], _REMARKS, last="; and ")
        yield f"{what}: {names} ({text})"


def next_step(making: Making) -> str:
    """Return the command to type next."""
    report = making.report
    source, output, data = (quote(p) for p in (making.source.path, making.output.path, making.calibration))
    scaling = _scaling_options(making.scaling) + (" --bgr" if making.bgr else "")
    python = f" --python {quote(making.source.python)}" if making.source.python else ""
    scaling += python
    data += scaling
    if report.check.report is not None and report.check.report.verdict == Verdict.DIFFERS:
        return f"tflq verify {output}"
    if report.streamed is not None:
        return f"tflq verify {output} --samples 20"
    if report.recipe.split_outputs:  # the outputs are no longer those of the source
        return f"tflq verify {output}"
    if is_damaged(report.comparison) and report.recipe.mode in (Mode.INT8, Mode.INT8X4, Mode.UINT8):
        again = f"tflq quantize {source} --calibration {data} -o {output} -f"
        return f"{again} --recipe best" if len(report.ranking) < _MANY else f"{again} --mode int16x8"
    return f"tflq compare {source} {output} --inputs {OTHER}{scaling}"


def _scaling_options(scaling: Scaling | None) -> str:
    if scaling is None:
        return ""
    mean, std = (",".join(f"{number:.9g}" for number in numbers) for numbers in (scaling.mean, scaling.std))
    return f" --mean {mean} --std {std}"
