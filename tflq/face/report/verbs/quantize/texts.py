"""Statements about a quantization, each in one line, and rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from tflq.comparison.verification import Verdict
from tflq.engine.api.subject import ModelFacts
from tflq.errors import RuntimeMissing
from tflq.face.report.numbers import counted
from tflq.face.report.runtimes import runtime_text
from tflq.face.report.verbs.compare.groups import groups_text, is_damaged
from tflq.face.report.verbs.compare.texts import (
    confidence_text,
    decibels,
    lost_text,
    more_text,
    quality_text,
    samples_text,
)
from tflq.face.report.verbs.quantize.methods import left_text, methods_text
from tflq.model.ir import TensorSpec, roots, view
from tflq.quantization.advice import Advice
from tflq.quantization.calibration import Scaling
from tflq.quantization.calibration.quarters import FEW
from tflq.quantization.judge.check import Check
from tflq.quantization.judge.eights import Eights
from tflq.quantization.judge.norms import WideNorms
from tflq.quantization.judge.selection import Ranked
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.judge.streamed import Streamed
from tflq.quantization.judge.win_back import WinBack
from tflq.quantization.recipe.presets import PRESETS
from tflq.quantization.recipe.recipe import Mode, Norms
from tflq.quantization.result import Remark, Report, Result

#: The samples of the next step: calibration data would judge a model by what it was fitted to.
OTHER = "OTHER_SAMPLES"
#: Operators that a remark names.
_REMARKS = 5
#: Number of configurations from which on more of them do not help.
_MANY = len(PRESETS["best"].candidates)


@dataclass(frozen=True, slots=True, eq=False)
class Making:
    """A quantization: source and output file, the calibration data's path, how it was read, the result, advice."""

    source: ModelFacts
    output: ModelFacts
    calibration: str
    scaling: Scaling | None
    result: Result
    bgr: bool = False
    advice: Advice | None = None

    @property
    def report(self) -> Report:
        """The quantization's report: its recipe, ranking, comparison and check."""
        return self.result.report


def headline(making: Making) -> str:
    """Return what is lost of the outputs, if a part is, then the figure of the whole."""
    lost = lost_text(making.report.comparison)
    return f"{lost}; {_figure(making)}" if lost else _figure(making)


def _figure(making: Making) -> str:
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
    into, out = (", ".join(dict.fromkeys(_type(graph.tensors[t]) for t in e)) for e in (graph.inputs, graph.outputs))
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


def why_text(report: Report) -> str:
    """Return how the configuration was chosen."""
    if report.interrupted:
        return "Interrupted. The best configuration until then, fitted to three quarters of the samples:"
    if len(report.ranking) == 1:
        return "The only configuration of the recipe:"
    by = "dB" if math.isnan(report.ranking[0].divergence) else "KL divergence"
    few = report.comparison.samples < FEW and not report.held_back
    if report.agreed is not None:
        by += " on all runtimes, those that are even by how far these agree"
    elif by != "dB":
        by += ", those that are even by dB"
    judged = "on the samples that they were fitted to" if few else "on samples that they were not fitted to"
    return f"The best of {len(report.ranking)} configurations by {by}, {judged}:"


def estimate_texts(report: Report) -> Iterator[str]:
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


def fit_text(report: Report) -> str:
    """Return how close the outputs of the written model are."""
    return f"As written: {quality_text(report.comparison)} over the {judge_text(report)}"


def judge_text(report: Report) -> str:
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


def ranking_row(candidate: Ranked) -> list[str]:
    """Return a row: a configuration's figures on the held-out samples, then its methods."""
    what = methods_text(candidate.methods) + (f": left, {left_text(candidate.left)}" if candidate.left else "")
    if candidate.score is None and not candidate.error:
        return ["", "", "", what]
    if candidate.score is None:
        return ["failed", "", "", f"{methods_text(candidate.methods)}: {candidate.error}"]
    same = "" if math.isnan(candidate.agreement) else f"{candidate.agreement:.1%}"
    divergence = "" if math.isnan(candidate.divergence) else f"{candidate.divergence:.2g}"
    return [decibels(candidate.sqnr).removesuffix(" dB"), divergence, same, what]


def sensitivity_row(sensitivity: Sensitivity) -> list[str]:
    """Return a row: an operator, and the outputs' ratio and agreement with it alone quantized."""
    same = "" if sensitivity.agreement is None else f"{sensitivity.agreement:.1%}"
    return [str(sensitivity.operator), sensitivity.op, decibels(sensitivity.sqnr).removesuffix(" dB"), same]


def check_text(check: Check) -> str:
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


def check_style(check: Check) -> str:
    """Return the style of the verification's result: good, bad or warning."""
    if check.report is None:
        return "warning" if isinstance(check.error, RuntimeMissing) else "bad"
    return {Verdict.SAME: "good", Verdict.CLOSE: "good", Verdict.DIFFERS: "bad"}.get(check.report.verdict, "warning")


def remark_texts(report: Report) -> Iterator[str]:
    """Yield which operators stay in float, were changed or spared, and which samples are outliers."""
    yield from _remarks("stays in float", report.kept_float)
    yield from _remarks("changed to fit", report.notes)
    yield from _remarks("spared by the budget", report.spared)
    if report.outlying:
        listed = ", ".join(map(str, report.outlying[:_REMARKS])) + more_text(len(report.outlying) - _REMARKS)
        yield f"calibration samples far beyond the others, more than ten times the median: {listed}"


def _remarks(what: str, remarks: Sequence[Remark]) -> Iterator[str]:
    """Yield one line for each distinct remark, with its operators."""
    by_text: dict[str, list[Remark]] = {}
    for remark in remarks:
        by_text.setdefault(remark.text, []).append(remark)
    for text, operators in by_text.items():
        names = ", ".join(f"{o.index} {o.op}" for o in operators[:_REMARKS]) + more_text(len(operators) - _REMARKS)
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


def _type(spec: TensorSpec) -> str:
    return getattr(spec.type, "label", str(spec.type))
