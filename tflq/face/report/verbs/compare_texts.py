"""Statements about a comparison, each in one line, and rows of tables; figures of outputs as they are read."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

from tflq.engine.api.files import ModelFacts
from tflq.engine.kernels.facts.rules import FIXED
from tflq.face.report.blocks import Block, Inline, Section, TableBlock, Text
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.quantize import FigureDocument, MetricDocument, OnRuntimeDocument, OperatorCountDocument
from tflq.face.report.wording import brief_name, counted, listed, short_name
from tflq.quantization.anchors import READ, UNIT
from tflq.quantization.judge.comparison import DAMAGED, WIDE, Fidelities, OnRuntime
from tflq.quantization.judge.detections import MOST_VALUES, DecisionAgreement, Fidelity, OutputPart, wilson
from tflq.quantization.judge.outputs import Metric, OutputFigures

#: Ratios from which on nothing differs, and below which boxes are damaged: 3 % of their size.
_EQUAL, _OFF = 250.0, 10.5


def group_text(name: str, ratio: float) -> str:
    """Return the figure of one part: the error of boxes as a share of their size, else decibels."""
    if ratio >= _EQUAL:
        return f"{name} equal"
    if _are_boxes(name):
        return f"{name} off by {UNIT * 10 ** (-ratio / 20):.1%} of their size"
    return f"{name} {round(ratio, 1) + 0.0:.1f} dB"


def is_lost(name: str, ratio: float) -> bool:
    """Return whether a part is damaged: boxes that are off by 3 % of their size, others below DAMAGED dB."""
    return ratio < (_OFF if _are_boxes(name) else DAMAGED)


def is_damaged(comparison: Fidelities) -> bool:
    """Return whether a part of the outputs is damaged as it is read, or else the outputs are."""
    ratios = comparison.figures.ratios
    if ratios:
        return any(is_lost(name, ratio) for name, ratio in ratios.items())
    units = (*comparison.parts, *comparison.lost_columns)
    return min([comparison.sqnr, *(unit.fidelity.sqnr for unit in units)]) < DAMAGED


def _are_boxes(name: str) -> bool:
    return name.partition(" ")[0] == "boxes"


def groups_text(ratios: Mapping[str, float]) -> str:
    """Return the figures of all parts, the worst first."""
    return ", ".join(group_text(name, ratio) for name, ratio in ratios.items())


def metric_text(metric: Metric) -> str:
    """Return a metric of both models."""
    before, after = (_figure(value, metric.unit) for value in (metric.reference, metric.other))
    return f"{metric.name} {before} before, {after} after"


def _figure(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "none" if math.isnan(value) else "endless"
    return f"{value:.2f} {unit}" if unit else f"{value:.4f}"


def figure_text(figures: OutputFigures) -> str:
    """Return the headline of outputs of several parts or with labels; nothing for a plain output without."""
    if figures.metrics:
        return "; ".join(map(metric_text, figures.metrics))
    return groups_text(figures.ratios)


def figure_texts(figures: OutputFigures) -> Iterator[str]:
    """Yield the parts as they are read, detections in common, and metrics."""
    yield from map(metric_text, figures.metrics)
    if figures.ratios:
        yield f"as they are read: {groups_text(figures.ratios)}"
    matches = figures.matches
    if matches is not None and matches.given:
        overlap = matches.overlap / matches.found if matches.found else 0.0
        yield (
            f"detections with scores of {READ:g} or more: {matches.found:,} of {matches.given:,} are found again "
            f"({matches.rate:.1%}, mean overlap {overlap:.3f}), {matches.extra:,} more than those"
        )


def figures_document(figures: OutputFigures) -> FigureDocument:
    """Return the figures as a document."""
    metrics = [
        filled(MetricDocument, metric, reference=_known(metric.reference), other=_known(metric.other))
        for metric in figures.metrics
    ]
    return filled(FigureDocument, figures, metrics=metrics)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("SQNR dB", ">"),
    ("largest error", ">"),
    ("mean error", ">"),
    ("tensor", "<"),
)

#: A part with fewer distinct values is named with their number; requantizations that are listed.
_FEW, _RESCALED = 64, 3
#: Fewer distinct values than this are few codes; outputs, columns and tensors that lines name.
_FEW_CODES, _NAMED = 8, 3
#: The ratio in dB below which an input's columns explain what is lost.
_FINE = 30.0
#: Codes below which a tensor of 8 bits is coarse because of its scale.
_FEW_CODES = 64
#: Flips that a line names.
_FLIPS = 5

#: Columns of a summary of several models.
SUMMARY_COLUMNS = (
    ("accuracy", ">"),
    ("same top-1", ">"),
    ("outputs' SQNR dB", ">"),
    ("bytes", ">"),
    ("worst operator", "<"),
)


def summary_cells(facts: ModelFacts, comparison: Fidelities) -> tuple[str, ...]:
    """Return a row of SUMMARY_COLUMNS for one model."""
    agreement, tensor = comparison.agreement, comparison.worst
    return (
        figures_cell(comparison),
        "" if agreement is None else f"{agreement.rate:.2%}",
        decibels(comparison.sqnr).removesuffix(" dB"),
        f"{facts.size:,}",
        "" if tensor is None else f"{tensor.index} {tensor.op}, SQNR {decibels(tensor.sqnr)}",
    )


def figures_cell(comparison: Fidelities) -> str:
    """Return the accuracy or the metrics of the other model; nothing without labels."""
    agreement = comparison.agreement
    accuracies = None if agreement is None else agreement.accuracies
    if accuracies is not None:
        return f"{accuracies[1]:.2%}"
    return ", ".join(f"{m.name} {m.other:.4g}" for m in comparison.figures.metrics)


def samples_text(count: int) -> str:
    """Return the number of samples with its noun."""
    return f"{count:,} sample{'' if count == 1 else 's'}"


def lead_text(comparison: Fidelities) -> str:
    """Return the headline: a part of the outputs that is lost, then `whole_text`."""
    lost = lost_text(comparison)
    return f"{lost}; {whole_text(comparison)}" if lost else whole_text(comparison)


def lost_text(comparison: Fidelities) -> str:
    """Return the weakest part of the outputs, if it is below DAMAGED dB; else nothing.

    Where it is known how outputs are read, only errors that are read count.
    """
    ratios, weakest = comparison.figures.ratios, comparison.weakest
    if ratios and not any(is_lost(name, ratio) for name, ratio in ratios.items()):
        return ""
    return part_text(comparison, weakest) if weakest is not None and _is_lost(weakest) else ""


def part_text(comparison: Fidelities, part: OutputPart | Fidelity) -> str:
    """Return the name and the ratio of a part of an output, or of a whole output, and how many values it has."""
    if isinstance(part, Fidelity):
        return f"output {short_name(part.name)}: {decibels(part.sqnr)}"
    name, output = part.fidelity.name or f"operand of operator {part.fidelity.index}", comparison.outputs[part.output]
    if part.column is not None:
        return f"{_unit_name(comparison, part)}: {decibels(part.fidelity.sqnr)} about its mean"
    return f"part {short_name(name)} of output {short_name(output.name)}: {decibels(part.fidelity.sqnr)}{_few(part)}"


def values_text(part: OutputPart) -> str:
    """Return the number of distinct values in the two models."""
    count = len(part.values)
    before = f"{MOST_VALUES} or more" if len(part.given) >= MOST_VALUES else str(len(part.given))
    return f"{count} distinct {'value' if count == 1 else 'values'} for {before}"


def _is_lost(part: OutputPart | Fidelity) -> bool:
    return (part if isinstance(part, Fidelity) else part.fidelity).sqnr < DAMAGED


def part_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield the figures of each part of joint outputs, the worst first."""
    for part in sorted(comparison.parts, key=lambda part: part.fidelity.sqnr):
        yield f"{part_text(comparison, part)}, {error_text(part.fidelity)}"


def unit_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield the outputs and numbers of a row that are constant, have few codes, or are lost about their mean."""
    constant = {unit.output for unit in comparison.units if unit.column is None and unit.fidelity.is_constant}
    stuck = {unit.output for unit in comparison.units if unit.column is None and _is_stuck(unit)}
    told = list[str]()
    for unit in comparison.units:
        name, sums = _unit_name(comparison, unit), unit.fidelity
        if unit.column is not None and unit.output in constant | stuck:
            continue  # the whole is reported
        if sums.is_constant:
            told.append(f"{name} is constant in float ({sums.low:.4g} in every sample): its ratio says nothing")
        elif _is_stuck(unit):
            step = comparison.outputs[unit.output].step
            small = f", less than a step of its codes ({step:.3g})" if sums.spread < step < math.inf else ""
            told.append(
                f"{name} has one code for every sample ({next(iter(unit.values)):.4g}), where float varies by "
                f"{sums.spread:.3g}{small}: the result does not depend on the input"
            )
        elif unit in comparison.lost_columns:
            told.append(f"{name}: {decibels(sums.sqnr)} about its mean, float varies by {sums.spread:.3g}{_few(unit)}")
        elif unit.column is None and len(unit.values) < _FEW_CODES <= len(unit.given) // 2:
            told.append(f"{name} has few codes: {values_text(unit)}")
    yield from told[:_NAMED]
    if len(told) > _NAMED:
        yield f"and {len(told) - _NAMED} more of the outputs' numbers"


def _is_stuck(unit: OutputPart) -> bool:
    return len(unit.values) == 1 < min(len(unit.given), unit.fidelity.samples) and not unit.fidelity.is_constant


def _few(unit: OutputPart) -> str:
    return f", {values_text(unit)}" if len(unit.values) < min(_FEW, len(unit.given)) else ""


def _unit_name(comparison: Fidelities, unit: OutputPart) -> str:
    """Return the words for an output, or for one number of it."""
    output = comparison.outputs[unit.output]
    count = output.elements // max(1, output.samples)
    number = "" if unit.column is None else f"number {unit.column} of {count} of "
    return f"{number}output {short_name(output.name)}"


def advice_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield what wins a lost part of a joint output back."""
    ratios = comparison.figures.ratios
    if comparison.parts and any(is_lost(name, ratio) for name, ratio in ratios.items()) and lost_text(comparison):
        yield (
            "one scale cannot hold parts whose ranges differ this much: tflq quantize FLOAT keeps them by a float tail "
            "(--float-tail auto, its default), or as outputs of their own (--split-outputs)"
        )


def column_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield the inputs some of whose columns one scale cannot hold, if much is lost."""
    for span in comparison.entries if comparison.leading < _FINE else ():
        if span.narrow:
            columns = ", ".join(map(str, span.narrow[:_NAMED])) + (" ..." if len(span.narrow) > _NAMED else "")
            yield (
                f"input {span.name}: {len(span.narrow)} of its {span.columns} columns ({columns}) vary by less than a "
                f"step of its codes, {span.step:.3g}: columns vary by {span.spreads[0]:.3g} to {span.spreads[1]:.3g}, "
                "more than one scale can hold; scale them alike before the model, or give them inputs of their own"
            )


def cut_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield the first tensors that lose most by what lies beyond their codes, if much is lost."""
    for span in comparison.narrow[:_NAMED] if comparison.leading < _FINE else ():
        where = f"input {span.name}" if span.index < 0 else f"operator {span.index} {span.op} ({short_name(span.name)})"
        yield (
            f"{where} saturates: its codes end at {span.low:.3g} and {span.high:.3g}, float reaches {span.seen[0]:.3g} "
            f"to {span.seen[1]:.3g}; {span.share:.1%} of its values are cut off, most of its noise: was the model "
            "calibrated on samples of smaller numbers?"
        )


def fixed_texts(comparison: Fidelities, operators: Collection[int]) -> Iterator[str]:
    """Yield which of some operators lose because their kernel fixes the output's scale, and their values are small."""
    for span in comparison.ranges:
        scales = {scale for (op, _), (scale, _) in FIXED.items() if op == span.op}
        used = (span.seen[1] - span.seen[0]) / span.step
        if (
            span.index in operators
            and used < _FEW_CODES
            and any(math.isclose(span.step, s, rel_tol=1e-6) for s in scales)
        ):
            yield (
                f"{span.index} {span.op} is coarse: its kernel fixes the output's scale at 1/{1 / span.step:.0f}, and "
                f"its values, {span.seen[0]:.3g} to {span.seen[1]:.3g}, use {max(used, 1):.0f} of 256 codes"
            )


def range_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield what the ranges show about the calibration, and the requantizations that lose most."""
    for span in comparison.entries:
        if span in comparison.wide:
            yield (
                f"input {span.name}: its codes stand for {span.low:.3g} to {span.high:.3g}, and the samples hold "
                f"{span.seen[0]:.3g} to {span.seen[1]:.3g}: the model was calibrated on other numbers (mean and std), "
                "or these samples are not scaled as it expects"
            )
    wide = [span for span in comparison.wide if span not in comparison.entries]
    if wide and 2 * len(wide) >= len(comparison.ranges):
        worst_span = max(wide, key=lambda span: span.excess)
        yield (
            f"ranges of {len(wide)} of {len(comparison.ranges)} tensors are {WIDE:g} or more times as wide as their "
            f"values here, up to {worst_span.excess:.3g} times ({worst_span.index} {worst_span.op}): the model was "
            "probably calibrated on other numbers (mean and std), or these samples are not scaled as it expects"
        )
    for tensor in sorted(comparison.rescaled, key=lambda tensor: tensor.sqnr)[:_RESCALED]:
        if tensor.sqnr < DAMAGED:
            yield f"rescaled without a counterpart: {tensor_text(tensor)}"


def whole_text(comparison: Fidelities) -> str:
    """Return metrics or accuracies if there are labels, else top-1 agreement, else how close the outputs are."""
    agreement = comparison.agreement
    if agreement is None or comparison.figures.metrics:
        return quality_text(comparison)
    if agreement.accuracies is not None:
        before, after = agreement.accuracies
        return f"accuracy {before:.2%} before, {after:.2%} after ({quality_text(comparison)})"
    return f"same top-1 in {agreement.rate:.2%} ({quality_text(comparison)})"


def quality_text(comparison: Fidelities) -> str:
    """Return how close outputs are: their parts as they are read, or their signal-to-noise ratio."""
    if figure_text(comparison.figures):
        return figure_text(comparison.figures)
    return (
        f"SQNR of the outputs {decibels(comparison.sqnr)}"
        if math.isfinite(comparison.sqnr)
        else _infinite(comparison.sqnr)
    )


def _infinite(sqnr: float) -> str:
    return "outputs are equal" if sqnr > 0 else "outputs are noise where the reference is 0"


def decibels(ratio: float) -> str:
    """Return a signal-to-noise ratio with its unit."""
    return f"{round(ratio, 1) + 0.0:.1f} dB" if math.isfinite(ratio) else "equal" if ratio > 0 else "-∞ dB"


def error_text(tensor: Fidelity) -> str:
    """Return the largest and the mean error of a tensor, in its own units."""
    return f"largest error {tensor.largest:.3g}, mean error {tensor.mean_error:+.2g}"


def confidence_text(hits: int, trials: int) -> str:
    """Return the confidence interval of a share."""
    low, high = wilson(hits, trials)
    return f"95 % confidence {low:.1%} to {high:.1%}"


def agreement_texts(agreement: DecisionAgreement | None) -> Iterator[str]:
    """Yield top-1 agreement with its confidence interval, ties, and accuracies if there are labels."""
    if agreement is None:
        return
    same = agreement.samples - len(agreement.flips)
    interval = confidence_text(same, agreement.samples)
    text = f"same top-1 in {same:,} of {samples_text(agreement.samples)}: {agreement.rate:.2%} ({interval})"
    if not math.isnan(agreement.divergence):
        text += f"; mean KL divergence of the outputs {agreement.divergence / agreement.samples:.3g} nats"
    yield text
    if agreement.tied:
        yield (
            f"in {agreement.tied:,} of {samples_text(agreement.samples)} two or more classes get the same largest "
            "score; read the logits instead"
        )
    if agreement.accuracies is not None:
        before, after = agreement.accuracies
        yield (
            f"accuracy {before:.2%} before, {after:.2%} after: {after - before:+.2%}, standard error "
            f"{agreement.standard_error:.2%} ({agreement.gained} only after, {agreement.lost} only before)"
        )


def flips_text(agreement: DecisionAgreement) -> str:
    """Return the first samples whose decision changed, and how many more there are."""
    return f"flips: {listed(flip_texts(agreement), _FLIPS, '; ', '; and ')}"


def flip_texts(agreement: DecisionAgreement) -> list[str]:
    """Return a text for each sample whose decision changed, the largest margin of the reference first."""
    flips = sorted(agreement.flips, key=lambda flip: -flip.margin)
    return [f"sample {f.sample}: {f.reference} to {f.other} (led by {f.margin:.3g})" for f in flips]


def where_texts(comparison: Fidelities) -> Iterator[str]:
    """Yield the first tensor below DAMAGED dB, the worst tensor, and how many have no counterpart."""
    if comparison.first is not None:
        yield f"first tensor with SQNR below {DAMAGED:g} dB: {tensor_text(comparison.first)}"
    if comparison.worst is not None and comparison.worst is not comparison.first:
        yield f"worst tensor: {tensor_text(comparison.worst)}"
    if comparison.unmatched:
        yield f"{comparison.unmatched} tensors have no counterpart of the same name and shape"


def tensor_text(tensor: Fidelity) -> str:
    """Return a tensor with its operator and its ratio."""
    return f"operator {tensor.index} {tensor.op}, SQNR {decibels(tensor.sqnr)} ({short_name(tensor.name)})"


def worst(comparison: Fidelities, count: int) -> list[Fidelity]:
    """Return the tensors with the lowest ratios, the lowest first."""
    return sorted((t for t in comparison.tensors if t.noise), key=lambda t: t.sqnr)[:count]


def tensor_row(tensor: Fidelity) -> list[Inline]:
    """Return a row of COLUMNS."""
    ratio = decibels(tensor.sqnr).removesuffix(" dB")
    return [
        str(tensor.index),
        tensor.op,
        ratio,
        f"{tensor.largest:.3g}",
        f"{tensor.mean_error:+.2g}",
        brief_name(tensor.name),
    ]


_COLUMNS = (
    ("runtime", "<"),
    ("accuracy", ">"),
    ("same top-1", ">"),
    ("SQNR dB", ">"),
    ("other outputs", ">"),
    ("other top-1", ">"),
    ("parts first at", "<"),
)


def runtimes_blocks(comparison: Fidelities) -> Iterator[Block]:
    """Yield the table of runtimes, and how each parts from the first; nothing if none were asked for."""
    if not comparison.runtimes:
        return
    first, *others = comparison.runtimes
    labelled = any(row.comparison is not None and figures_cell(row.comparison) for row in comparison.runtimes)
    is_classifier = comparison.agreement is not None
    shown = [True, labelled, is_classifier, True, bool(others), is_classifier and bool(others), bool(others)]
    columns = tuple(column for column, there in zip(_COLUMNS, shown, strict=True) if there)
    rows = [[cell for cell, there in zip(_row(row, first), shown, strict=True) if there] for row in comparison.runtimes]
    blocks: list[Block] = [TableBlock(columns, rows)]
    blocks += [Text(f"{row.profile} does not take the model: {row.error}", "warning") for row in others if row.error]
    yield Section("runtimes", f"On each runtime, compared with {first.profile}", blocks)


def _row(row: OnRuntime, first: OnRuntime) -> list[str]:
    found = row.comparison
    if found is None:
        return [row.profile, "refused", "", "", "", "", ""]
    same = "" if found.agreement is None else f"{found.agreement.rate:.2%}"
    cells = [row.profile, figures_cell(found), same, decibels(found.leading).removesuffix(" dB")]
    if row is first:
        return [*cells, "", "", ""]
    changed = "" if found.agreement is None else f"{row.changed:,}"
    return [*cells, f"{row.differing:,} of {row.elements:,}", changed, parting_text(row)]


def parting_text(row: OnRuntime) -> str:
    """Return the first operator that differs on the same inputs, and how many others do."""
    if not row.operators:
        return "nowhere" if not row.differing else "no operator alone"
    first, more = row.operators[0], len(row.operators) - 1
    others = f", and {counted(more, 'more operator')}" if more else ""
    return f"{first.index} {first.op}{others}"


def runtimes_document(comparison: Fidelities) -> list[OnRuntimeDocument]:
    """Return a row for each runtime; operators are those of the other model."""
    return [_document(row) for row in comparison.runtimes]


def _document(row: OnRuntime) -> OnRuntimeDocument:
    found = row.comparison
    agreement = None if found is None else found.agreement
    accuracies = None if agreement is None else agreement.accuracies
    return filled(
        OnRuntimeDocument,
        row,
        sqnr=None if found is None else found.leading,
        accuracy=None if accuracies is None else accuracies[1],
        agreement=None if agreement is None else agreement.rate,
        metrics={} if found is None else {metric.name: metric.other for metric in found.figures.metrics},
        operators=[filled(OperatorCountDocument, o, differing=o.differing[0]) for o in row.operators],
    )
