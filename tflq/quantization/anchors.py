"""The parts of a detector's outputs, and their errors as they are read.

Boxes as detectors write them: the form of their four numbers, found from the values themselves.

The error of a model's outputs as they are read: by group of channels, at the anchors with high scores.

Callers ignore the boxes of anchors whose scores are low. So errors of all that belongs to anchors are weighted by the
scores of the float model, and box errors are in units of a tenth of the box's own size. Scores that a model gives as
logits are compared as probabilities.

The scores that decide a model's first judged output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np

from tflq.comparison.inspection.layout import CORNERS, LayoutGroup, OutputLayout, layout_of
from tflq.errors import ModelError
from tflq.quantization.params import ROUNDING
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.typing import Reals

#: Errors of boxes are measured in this share of the box's size: it costs about one of the overlaps from 0.5 to 0.95.
UNIT = 0.1
#: Distributions of distances have at least this number of bins.
BINS = 8
#: Share of the boxes that are read that must suit a form.
_MOST = 0.98


class BoxForm(Enum):
    """The meaning of four numbers.

    CORNERS: two corners. CENTRE: the centre and the size. DISTANCES: those of the four sides from an anchor, as means
    of distributions. DELTAS: none of these is known.
    """

    CORNERS = "corners"
    CENTRE = "centre"
    DISTANCES = "distances"
    DELTAS = "deltas"


def form_of(boxes: Reals, weights: Reals) -> BoxForm:
    """Return the form of boxes [4, N]; only those with positive weights [N] count.

    Two corners if the second lies beyond the first; else a centre and a size if sizes are positive, and boxes reach
    hardly below 0. Encoded offsets from anchors are as often negative as positive, and are neither.
    """
    read = boxes[:, weights > 0]
    if read.shape[1] == 0 or not np.isfinite(read).all():
        return BoxForm.DELTAS
    first, second = read[:2], read[2:]
    if np.mean((second > first).all(axis=0)) >= _MOST and np.mean(second > 0) >= _MOST:
        extent = max(float(second.max()), 1e-30)
        if np.mean(first >= -0.25 * extent) >= _MOST:
            return BoxForm.CORNERS
    size = np.maximum(second, 0.0)
    inside = (first > 0) & (first - size / 2 >= -0.5 * size - 0.05 * max(float(first.max()), 1e-30))
    return BoxForm.CENTRE if np.mean((second > 0) & inside) >= _MOST else BoxForm.DELTAS


def corners(boxes: Reals, form: BoxForm) -> Reals:
    """Return boxes [4, N] as two corners."""
    if form is not BoxForm.CENTRE:
        return boxes
    half = boxes[2:] / 2
    return np.concatenate([boxes[:2] - half, boxes[:2] + half])


def units(boxes: Reals, form: BoxForm) -> Reals:
    """Return UNIT of the size of each box along each coordinate [4, N]."""
    size = (
        boxes[2:] + boxes[:2] * {BoxForm.CORNERS: -1, BoxForm.CENTRE: 0, BoxForm.DISTANCES: 1, BoxForm.DELTAS: 0}[form]
    )
    smallest = 1e-3 * max(float(np.abs(boxes).max(initial=0.0)), 1e-30)
    return UNIT * np.tile(np.maximum(size, smallest), (2, 1))


def mean_bins(logits: Reals) -> Reals:
    """Return the mean bin [4, N] of four distributions of logits [4 * bins, N]: distances, as detectors decode them."""
    bins = np.clip(logits, -1e4, 1e4).reshape(4, -1, logits.shape[1])
    shares = np.exp(bins - bins.max(axis=1, keepdims=True))
    means: Reals = (shares * np.arange(bins.shape[1])[:, None]).sum(axis=1) / shares.sum(axis=1)
    return means


def overlaps(first: Reals, second: Reals) -> Reals:
    """Return the intersection over union [N, M] of boxes [4, N] and [4, M], as two corners each."""
    low = np.maximum(first[:2, :, None], second[:2, None])
    high = np.minimum(first[2:, :, None], second[2:, None])
    inside = np.clip(high - low, 0.0, None).prod(axis=0)
    areas = [np.clip(b[2:] - b[:2], 0.0, None).prod(axis=0) for b in (first, second)]
    union: Reals = np.maximum(areas[0][:, None] + areas[1][None] - inside, 1e-12)
    return np.asarray(inside / union, np.float64)


#: The judged tensors of one sample, flat float64, in the order of the layout.
Row = Sequence[Reals]

#: Anchors with lower scores are not read, unless they are the best of their sample.
READ = 0.25
#: Logits of classes are so low at most anchors: a median of about 0.27.
_BACKGROUND = -1.0
#: Scores of a SOFTMAX add up to 1, except for this much.
_SUM = 0.02
#: The name of parts that no scores judge.
VALUES = "values"
#: Replaces errors that are not finite.
_ENDLESS = 1e30


class ColumnKind(Enum):
    """The meaning of columns of scores: all are classes, the first is a factor of all others, one is the background."""

    CLASSES = "classes"
    OBJECTNESS = "objectness"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class Columns:
    """The meaning of the columns of scores; `at` is that of the background."""

    kind: ColumnKind
    at: int = 0


@dataclass(frozen=True, eq=False)
class Reading:
    """The way in which outputs are read, found from the float model's outputs on some samples.

    `logits` are the groups that hold scores as logits; `judges` gives for each group the one whose scores weight it.
    `columns` gives the meaning of the columns of scores, `forms` those of boxes, by group. `powers` are the mean
    signals of the families, by which errors are divided. `means` are the mean values [C, N] of groups that no scores
    judge: their signal is about these, since a constant part does not depend on the input.
    """

    layout: OutputLayout
    logits: frozenset[int]
    judges: tuple[int | None, ...]
    columns: Mapping[int, Columns]
    forms: Mapping[int, BoxForm]
    powers: tuple[float, ...]
    means: Mapping[int, Reals] = field(default_factory=dict)

    @property
    def has_boxes(self) -> bool:
        """True if boxes have scores."""
        groups = self.layout.groups
        return any(
            j is not None and (k in self.forms or len(groups[k].places) == CORNERS) for k, j in enumerate(self.judges)
        )

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The groups of one meaning, as those of several scales are, together."""
        kin: dict[object, list[int]] = {}
        for k, group in enumerate(self.layout.groups):
            kind = self._kind(k)
            kin.setdefault((kind, k if kind == VALUES else len(group.places)), []).append(k)
        return tuple(map(tuple, kin.values()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the families for people: boxes, scores or others, with a number where there are several."""
        kinds = [self._kind(family[0]) for family in self.families]
        seen: dict[str, int] = {}
        named = []
        for kind in kinds:
            seen[kind] = seen.get(kind, 0) + 1
            named.append(kind if kinds.count(kind) == 1 else f"{kind} {seen[kind]}")
        return tuple(named)

    def _kind(self, k: int) -> str:
        group = self.layout.groups[k]
        if group.is_scores or k in self.logits:
            return "scores"
        if self.judges[k] is None:
            return VALUES
        if k in self.forms:
            return "boxes"
        return "box offsets" if len(group.places) == CORNERS else "coefficients"

    def weights(self, k: int, row: Row) -> Reals | None:
        """Return the weights [N] of a group's anchors in a sample of the float model; None if all count alike."""
        judge = self.judges[k]
        if judge is None:
            return None
        scores = self.classes(judge, row).max(axis=0, initial=0.0)
        return np.where(scores >= min(READ, float(scores.max(initial=0.0))), scores, 0.0)

    def classes(self, k: int, row: Row) -> Reals:
        """Return the scores of classes [C, N] that a group of scores gives in a sample."""
        return class_scores(self.values(k, row), self.columns.get(k, Columns(ColumnKind.CLASSES)))

    def noises(self, row: Row, other: Row) -> list[float]:
        """Return the errors of each family in one sample, in parts of the family's mean signal."""
        found = []
        for family, power in zip(self.families, self.powers, strict=True):
            noise = sum(self._noise(k, row, other) for k in family) / power
            found.append(noise if np.isfinite(noise) else _ENDLESS)
        return found

    def _noise(self, k: int, row: Row, other: Row) -> float:
        values = self.values(k, row)
        difference = np.square(self.values(k, other) - values)
        weights, form = self.weights(k, row), self.forms.get(k)
        if weights is not None:
            difference = difference * weights
        return float((difference if form is None else difference / np.square(units(values, form))).sum())

    def signals(self, row: Row) -> list[float]:
        """Return the signal of each family in one sample: its power, or the number of box coordinates that are read."""
        return [sum(self._signal(k, row) for k in family) for family in self.families]

    def _signal(self, k: int, row: Row) -> float:
        weights, values = self.weights(k, row), self.values(k, row)
        if weights is None:
            return float(np.square(values - self.means.get(k, 0.0)).sum())
        return float((weights * np.square(values if k not in self.forms else np.ones_like(values))).sum())

    def values(self, k: int, row: Row) -> Reals:
        """Return the values [C, N] of a group; logits as probabilities, distributions as mean distances."""
        group = self.layout.groups[k]
        values = row[group.output][group.places]
        if self.forms.get(k) is BoxForm.DISTANCES:
            return mean_bins(values)
        return 1 / (1 + np.exp(-np.clip(values, -60, 60))) if k in self.logits else values


def reading_of(layout: OutputLayout, rows: Sequence[Row]) -> Reading:
    """Return how the outputs are read, from the float model's on some samples."""
    judges, logits, columns = [group.judge for group in layout.groups], set[int](), dict[int, Columns]()
    for anchors in {group.anchors for group in layout.groups}:
        kin = [k for k, group in enumerate(layout.groups) if group.anchors == anchors]
        if anchors < 2 or len(kin) < 2 or any(layout.groups[k].is_scores for k in kin):
            continue
        low = [k for k in kin if _are_logits(layout.groups[k], rows)]
        if len(low) == 1:
            logits.update(low)
            judges = [low[0] if k in kin and k not in low else judge for k, judge in enumerate(judges)]
    plain = Reading(layout, frozenset(logits), tuple(judges), {}, {}, (1.0,) * len(judges))
    for k in {judge for judge in judges if judge is not None} if rows else ():
        columns[k] = columns_of(np.concatenate([plain.values(k, row) for row in rows], axis=1))
    plain = replace(plain, columns=columns)
    forms = {k: form for k in range(len(judges)) if rows and (form := _form(plain, k, rows)) is not BoxForm.DELTAS}
    known = replace(plain, forms=forms)
    known = replace(known, means={k: m for k in range(len(judges)) if (m := _mean(known, k, rows)) is not None})
    signals = np.array([known.signals(row) for row in rows]).reshape(len(rows), len(known.families))
    means = signals.mean(axis=0) if rows else np.zeros(len(known.families))
    means = means * [
        len(rows) / (len(rows) - 1) if set(family) & set(known.means) else 1.0 for family in known.families
    ]
    return replace(known, powers=tuple(float(m) if np.isfinite(m) and m > 0 else 1.0 for m in means))


def _mean(reading: Reading, k: int, rows: Sequence[Row]) -> Reals | None:
    """Return the mean values of a group that no scores judge; None if they are not known, or never change."""
    if reading.judges[k] is not None or len(rows) < 2:
        return None
    values = np.array([reading.values(k, row) for row in rows])
    is_constant = values.size == 0 or values.std(axis=0).max() <= ROUNDING * np.abs(values).max()
    return None if is_constant else np.asarray(values.mean(axis=0), np.float64)


def _form(reading: Reading, k: int, rows: Sequence[Row]) -> BoxForm:
    """Return the form of boxes that a group holds; DELTAS if it holds none, or offsets from anchors."""
    groups, judges = reading.layout.groups, reading.judges
    if judges[k] is None:
        return BoxForm.DELTAS
    channels = len(groups[k].places)
    if channels == CORNERS:
        boxes = np.concatenate([row[groups[k].output][groups[k].places] for row in rows], axis=1)
        weights = [reading.weights(k, row) for row in rows]
        return form_of(boxes, np.concatenate([w for w in weights if w is not None]))
    kin = [other for other, judge in enumerate(judges) if judge == judges[k] and other != k]
    is_distribution = judges[k] in reading.logits and not channels % CORNERS and channels >= CORNERS * BINS
    return BoxForm.DISTANCES if is_distribution and not kin else BoxForm.DELTAS


def columns_of(scores: Reals) -> Columns:
    """Return what the columns of scores [C, N] are, from many anchors.

    If the greatest is high at most anchors, a column is no class. Where scores add up to 1, the one that is high on
    average is the background; else the first is a factor of the others (objectness).
    """
    classes = Columns(ColumnKind.CLASSES)
    if len(scores) < 2 or scores.shape[1] < 2 or np.median(scores.max(axis=0)) < READ:
        return classes
    if np.median(np.abs(scores.sum(axis=0) - 1)) < _SUM:
        other = Columns(ColumnKind.BACKGROUND, int(scores.mean(axis=1).argmax()))
    else:
        other = Columns(ColumnKind.OBJECTNESS)
    return other if np.median(class_scores(scores, other).max(axis=0)) < READ else classes


def class_scores(scores: Reals, columns: Columns) -> Reals:
    """Return the scores of classes [K, N] from scores [C, N]."""
    if columns.kind is ColumnKind.OBJECTNESS:
        return np.asarray(scores[0] * scores[1:], np.float64)
    if columns.kind is ColumnKind.BACKGROUND:
        return np.asarray(np.delete(scores, columns.at, axis=0), np.float64)
    return scores


def _are_logits(group: LayoutGroup, rows: Sequence[Row]) -> bool:
    """Return whether values are logits of classes, most of which are background."""
    greatest = [row[group.output][group.places].max(axis=0) for row in rows]
    return bool(greatest) and float(np.median(np.concatenate(greatest))) < _BACKGROUND


@dataclass(frozen=True, slots=True)
class Scores:
    """The tensor that decides the first judged output, and the beta of the SOFTMAX that reads it (None: no SOFTMAX)."""

    tensor: int
    beta: float | None


def scores_of(floats: FloatModel) -> Scores:
    """Return the input of the last SOFTMAX if it makes the first judged output of rows, else that output.

    Raises:
        ModelError: The model has no output.
    """
    if not floats.graph.outputs:
        raise ModelError("the model has no output, by which configurations are judged")
    output = layout_of(floats.graph).tensors[0]
    maker = floats.graph.maker(output)
    if maker is None or maker.name != "SOFTMAX" or len(floats.graph.tensors[output].shape) != 2:
        return Scores(output, None)
    return Scores(maker.inputs[0], float(maker.options["beta"]) if maker.options else 1.0)
