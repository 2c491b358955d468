"""A comparison of two models in lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from shlex import quote

from tflq.api.subject import ModelFacts
from tflq.quantization.judge.agreement import Agreement
from tflq.quantization.judge.comparison import DAMAGED, Comparison
from tflq.quantization.judge.fidelity import Fidelity
from tflq.report.names import short_name
from tflq.report.render.line import Line
from tflq.report.render.text import table

COLUMNS = (("#", ">"), ("operator", "<"), ("dB", ">"), ("largest error", ">"), ("mean error", ">"), ("tensor", "<"))


#: Tensors that are listed where not all are asked for, and flips.
WORST, FLIPS = 10, 5


#: What a summary of several models says of each.
SUMMARY_COLUMNS = (("accuracy", ">"), ("same top-1", ">"), ("outputs dB", ">"), ("bytes", ">"), ("worst operator", "<"))


def summary_cells(facts: ModelFacts, comparison: Comparison) -> tuple[str, ...]:
    """A row of SUMMARY_COLUMNS: of one model against the reference."""
    agreement, tensor = comparison.agreement, comparison.worst
    accuracies = None if agreement is None else agreement.accuracies
    return (
        "" if accuracies is None else f"{accuracies[1]:.2%}",
        "" if agreement is None else f"{agreement.rate:.2%}",
        decibels(comparison.sqnr).removesuffix(" dB"),
        f"{facts.size:,}",
        "" if tensor is None else f"{tensor.index} {tensor.op}, {decibels(tensor.sqnr)}",
    )


def compare_lines(
    first: ModelFacts, second: ModelFacts, comparison: Comparison, *, all_tensors: bool, next_command: str
) -> Iterator[Line]:
    """The outputs, the decisions, where noise begins and where it is worst, and a row a tensor."""
    yield Line(
        f"{second.path} against {first.path}, {samples_text(comparison.samples)}: {lead_text(comparison)}", "strong"
    )
    for output in comparison.outputs:
        yield Line(f"output {short_name(output.name)}: {decibels(output.sqnr)}, {error_text(output)}")
    for text in agreement_texts(comparison.agreement):
        yield Line(text)
    for text in where_texts(comparison):
        yield Line(text)
    chosen = comparison.tensors if all_tensors else worst(comparison, WORST)
    if chosen:
        yield Line("")
        yield from table(COLUMNS, map(tensor_row, chosen))
    if len(chosen) < len(comparison.tensors):
        yield Line(f"the worst {len(chosen)} of {len(comparison.tensors)} tensors; --all lists all", "faint")
    if next_command:
        yield Line(f"Next: {next_command}", "strong")


def next_step(first: str, second: str, comparison: Comparison) -> str:
    """Return the command to type next where a tensor is damaged, or an empty string."""
    return "" if comparison.first is None else f"tflq diff {quote(first)} {quote(second)}"


def samples_text(count: int) -> str:
    """How many samples."""
    return f"{count:,} sample{'' if count == 1 else 's'}"


def lead_text(comparison: Comparison) -> str:
    """Return the headline: accuracies if there are labels, else top-1 agreement, else the outputs' ratio in dB."""
    agreement = comparison.agreement
    if agreement is None:
        return quality_text(comparison)
    if agreement.accuracies is not None:
        before, after = agreement.accuracies
        return f"accuracy {before:.2%} before, {after:.2%} after ({quality_text(comparison)})"
    return f"same top-1 in {agreement.rate:.2%} ({quality_text(comparison)})"


def quality_text(comparison: Comparison) -> str:
    """The outputs' signal-to-noise ratio."""
    return f"outputs {decibels(comparison.sqnr)}" if math.isfinite(comparison.sqnr) else _infinite(comparison.sqnr)


def _infinite(sqnr: float) -> str:
    return "outputs are equal" if sqnr > 0 else "outputs are noise where the reference is 0"


def decibels(ratio: float) -> str:
    """A signal-to-noise ratio."""
    return f"{ratio:.1f} dB" if math.isfinite(ratio) else "equal" if ratio > 0 else "-∞ dB"


def error_text(tensor: Fidelity) -> str:
    """Largest and mean error of a tensor, in its own units."""
    return f"largest error {tensor.largest:.3g}, mean error {mean_error(tensor):+.2g}"


def mean_error(tensor: Fidelity) -> float:
    """Mean of other - reference over all elements."""
    return tensor.bias / tensor.elements if tensor.elements else 0.0


def agreement_texts(agreement: Agreement | None) -> Iterator[str]:
    """Yield top-1 agreement with its confidence interval, accuracies if there are labels, and the samples that flip."""
    if agreement is None:
        return
    low, high = agreement.interval
    same = agreement.samples - len(agreement.flips)
    interval = f"95 % confidence {low:.1%} to {high:.1%}"
    text = f"same top-1 in {same:,} of {samples_text(agreement.samples)}: {agreement.rate:.2%} ({interval})"
    if not math.isnan(agreement.divergence):
        text += f"; mean KL divergence {agreement.divergence / agreement.samples:.3g} nats"
    yield text
    if agreement.tied:
        yield (
            f"ties: in {agreement.tied:,} of {samples_text(agreement.samples)} several classes share the largest "
            "output, whose steps are too coarse; what the last SOFTMAX reads has finer ones"
        )
    if agreement.accuracies is not None:
        before, after = agreement.accuracies
        yield (
            f"accuracy {before:.2%} before, {after:.2%} after: {after - before:+.2%}, standard error "
            f"{agreement.standard_error:.2%} ({agreement.gained} only after, {agreement.lost} only before)"
        )
    if agreement.flips:
        yield f"flips: {'; '.join(flip_texts(agreement)[:FLIPS])}{more_text(len(agreement.flips) - FLIPS)}"


def flip_texts(agreement: Agreement) -> list[str]:
    """Return a text for each sample whose decision changed, the largest margin of the reference first."""
    flips = sorted(agreement.flips, key=lambda flip: -flip.margin)
    return [f"sample {f.sample}: {f.reference} to {f.other} (led by {f.margin:.3g})" for f in flips]


def more_text(count: int) -> str:
    """Return how many more there are than are shown, or an empty string."""
    return f"; and {count} more" if count > 0 else ""


def where_texts(comparison: Comparison) -> Iterator[str]:
    """Yield the first tensor below DAMAGED dB, the worst tensor, and how many have no counterpart."""
    if comparison.first is not None:
        yield f"first tensor below {DAMAGED:g} dB: {tensor_text(comparison.first)}"
    if comparison.worst is not None and comparison.worst is not comparison.first:
        yield f"worst tensor: {tensor_text(comparison.worst)}"
    if comparison.unmatched:
        yield f"{comparison.unmatched} tensors have no counterpart of the same name and shape"


def tensor_text(tensor: Fidelity) -> str:
    """A tensor by its operator, with its ratio."""
    return f"operator {tensor.index} {tensor.op}, {decibels(tensor.sqnr)} ({short_name(tensor.name)})"


def worst(comparison: Comparison, count: int) -> list[Fidelity]:
    """The tensors with the lowest ratios, the lowest first."""
    return sorted((t for t in comparison.tensors if t.noise), key=lambda t: t.sqnr)[:count]


def tensor_row(tensor: Fidelity) -> list[str]:
    """Operator, ratio, errors, name."""
    ratio = decibels(tensor.sqnr).removesuffix(" dB")
    return [
        str(tensor.index),
        tensor.op,
        ratio,
        f"{tensor.largest:.3g}",
        f"{mean_error(tensor):+.2g}",
        short_name(tensor.name),
    ]
