"""Figures of outputs as they are read: boxes and scores by part, detections in common, metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tflq.face.report.documents.compare import FigureDocument
from tflq.face.report.documents.shared import fields_of
from tflq.quantization.anchors import READ
from tflq.quantization.boxes import UNIT
from tflq.quantization.judge.comparison import DAMAGED, Comparison
from tflq.quantization.judge.outputs import Figures, Metric

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


def is_damaged(comparison: Comparison) -> bool:
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


def figure_text(figures: Figures) -> str:
    """Return the headline of outputs of several parts or with labels; nothing for a plain output without."""
    if figures.metrics:
        return "; ".join(map(metric_text, figures.metrics))
    return groups_text(figures.ratios)


def figure_texts(figures: Figures) -> Iterator[str]:
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


def figures_document(figures: Figures) -> FigureDocument:
    """Return the figures as a document."""
    matches = figures.matches
    return {
        "ratios": dict(figures.ratios),
        "matches": None if matches is None else fields_of(matches),
        "metrics": [
            {"name": m.name, "reference": _known(m.reference), "other": _known(m.other), "unit": m.unit}
            for m in figures.metrics
        ],
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
