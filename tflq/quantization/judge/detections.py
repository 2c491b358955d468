"""Detections, pictures and parts of outputs, and their measures.

Detections that a model's outputs mean, and how many of the right ones are among them (mAP).

Source of the measure: COCO's average precision with 101 recall points (pycocotools COCOeval), without its areas and
crowds; greedy suppression by class at an overlap of 0.6, 100 detections a picture, scores above 0.01.

Measures of pictures and masks: mean intersection over union, signal-to-noise ratio, structural similarity.

The fidelity of one tensor of a model to that of another, over all elements of all samples.

Parts of joint outputs, each with its own figures: one lost part can hide behind the others' signal.

The share of samples on which two models decide alike: on the greatest score of the first output.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.layout import groups_of, merge
from tflq.engine.jit.compiled import Int, compiled
from tflq.model.ir import GraphView
from tflq.quantization.anchors import READ, BoxForm, Reading, Row, corners, overlaps
from tflq.quantization.params import ROUNDING
from tflq.typing import Array, Ints, Reals

#: Scores below this are no detections; boxes that overlap a better one of their class by more are the same.
LEAST, SAME = 0.01, 0.6
#: Candidates and detections of a picture.
_CANDIDATES, _MOST = 300, 100
#: Overlaps from which on a detection is right.
OVERLAPS = np.linspace(0.5, 0.95, 10)
_RECALLS = np.linspace(0, 1, 101)


@dataclass(frozen=True, slots=True, eq=False)
class FoundBoxes:
    """Detections of a picture: corners [4, M] (x, y, x, y), scores [M] falling, classes [M]."""

    boxes: Reals
    scores: Reals
    classes: NDArray[np.int64]

    def read(self, least: float = READ) -> FoundBoxes:
        """Return the detections with scores of at least `least`."""
        kept = self.scores >= least
        return FoundBoxes(self.boxes[:, kept], self.scores[kept], self.classes[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The right objects of a picture: corners [4, K] and classes [K]."""

    boxes: Reals
    classes: NDArray[np.int64]


def boxes_of(reading: Reading) -> tuple[int, int] | None:
    """Return the groups of the first decoded boxes and of their scores; None if there are none."""
    decoded = [k for k, form in reading.forms.items() if form is not BoxForm.DISTANCES]
    pairs = ((k, judge) for k, judge in enumerate(reading.judges) if judge is not None and k in decoded)
    return next(pairs, None)


def found_in(reading: Reading, row: Row) -> FoundBoxes:
    """Return the detections of one sample, after suppression; its layout has boxes (`boxes_of`)."""
    groups = boxes_of(reading)
    assert groups is not None  # the caller checked it
    boxes = corners(reading.values(groups[0], row), reading.forms[groups[0]])
    return suppress(boxes, reading.classes(groups[1], row))


def suppress(boxes: Reals, scores: Reals) -> FoundBoxes:
    """Return the best of boxes [4, N] with scores [C, N], without those that overlap a better one of their class."""
    with np.errstate(invalid="ignore"):
        classes, places = np.nonzero((scores > LEAST) & np.isfinite(boxes).all(axis=0))
    order = np.lexsort((classes, places, -scores[classes, places]))[:_CANDIDATES]
    classes, places = classes[order], places[order]
    near = boxes[:, places]
    same = (overlaps(near, near) > SAME) & (classes[:, None] == classes)
    kept, gone = list[int](), np.zeros(len(order), bool)
    for k in range(len(order)):
        if not gone[k] and len(kept) < _MOST:
            kept.append(k)
            gone |= same[k]
    return FoundBoxes(near[:, kept], scores[classes[kept], places[kept]], classes[kept].astype(np.int64))


def mean_precision(found: Sequence[FoundBoxes], right: Sequence[Objects]) -> tuple[float, float]:
    """Return mAP at an overlap of 0.5, and its mean over 0.5 to 0.95; the mean over classes that occur. NaN if none."""
    classes = sorted({int(c) for objects in right for c in objects.classes})
    curves = np.array([_precisions(found, right, c) for c in classes]).reshape(-1, len(OVERLAPS))
    return (float(curves[:, 0].mean()), float(curves.mean())) if classes else (np.nan, np.nan)


def _precisions(found: Sequence[FoundBoxes], right: Sequence[Objects], kind: int) -> Reals:
    """Return the average precision of one class at each of OVERLAPS."""
    scores, hits, total = [np.zeros(0)], [np.zeros((0, len(OVERLAPS)), bool)], 0
    for f, r in zip(found, right, strict=True):
        own, theirs = f.classes == kind, r.classes == kind
        total += int(theirs.sum())
        scores.append(f.scores[own])
        hits.append(_hits(overlaps(f.boxes[:, own], r.boxes[:, theirs])))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    counted = np.cumsum(np.concatenate(hits)[order], axis=0)
    precision = counted / np.arange(1, len(order) + 1)[:, None]
    precision = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    averages = []
    for k in range(len(OVERLAPS)):
        at = np.searchsorted(counted[:, k] / total, _RECALLS, side="left")
        padded = np.append(precision[:, k], 0.0)
        averages.append(float(padded[np.minimum(at, len(order))].mean()))
    return np.array(averages)


def _hits(shares: Reals) -> NDArray[np.bool_]:
    """Return which detections [M, thresholds] match an object that no better one has taken, from overlaps [M, K]."""
    hits = np.zeros((len(shares), len(OVERLAPS)), bool)
    if not shares.shape[1]:
        return hits
    for k, least in enumerate(OVERLAPS):
        free = np.ones(shares.shape[1], bool)
        for m, row in enumerate(shares):
            best = int(np.where(free, row, 0.0).argmax())
            if free[best] and row[best] >= least:
                free[best], hits[m, k] = False, True
    return hits


@dataclass(slots=True)
class Matches:
    """Detections of a model that another one finds, too: the same class, and an overlap of at least 0.5.

    `found` of the reference's `given` detections with scores of READ or more are matched; `overlap` is the sum of their
    overlaps. `extra` detections of the other model are not the reference's.
    """

    given: int = 0
    found: int = 0
    extra: int = 0
    overlap: float = 0.0

    def add(self, reference: FoundBoxes, other: FoundBoxes) -> None:
        """Count a picture: each detection of the reference takes the other's nearest one that is free."""
        ours, theirs = reference.read(), other.read()
        shares = overlaps(ours.boxes, theirs.boxes) * (ours.classes[:, None] == theirs.classes)
        self.given += len(ours.scores)
        matched = 0
        while shares.size and shares.max() >= OVERLAPS[0]:
            m, k = np.unravel_index(int(shares.argmax()), shares.shape)
            self.overlap += float(shares[m, k])
            shares[m], shares[:, k] = 0.0, 0.0
            matched += 1
        self.found += matched
        self.extra += len(theirs.scores) - matched

    @property
    def rate(self) -> float:
        """The share of the reference's detections that are found; NaN if there are none."""
        return self.found / self.given if self.given else np.nan


#: Pixels of this class count nowhere.
VOID = 255
#: Standard deviation and half width of the window of structural similarity, and its constants for pictures of 0 to 1.
_SIGMA, _REACH, _SMALL = 1.5, 5, (0.01**2, 0.03**2)


@dataclass(slots=True)
class Overlap:
    """Pixels of each class in both masks, and in either, over all samples [classes]."""

    both: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    either: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, given: Ints, right: Ints, classes: int) -> None:
        """Count a mask; classes are below `classes`, except VOID in `right`."""
        known = right != VOID
        counts = np.zeros((classes, classes), np.int64)
        np.add.at(counts, (right[known], given[known]), 1)
        both = np.diag(counts)
        either = counts.sum(axis=0) + counts.sum(axis=1) - both
        self.both = both + self.both if self.both.size else both
        self.either = either + self.either if self.either.size else either

    @property
    def mean(self) -> float:
        """Mean intersection over union of the classes that occur; NaN if none does."""
        known = self.either > 0
        return float((self.both[known] / self.either[known]).mean()) if known.any() else math.nan


@dataclass(slots=True)
class Likeness:
    """Mean square errors and structural similarities of pictures of 0 to 1, summed over samples."""

    samples: int = 0
    square: float = 0.0
    similarity: float = 0.0

    def add(self, given: Reals, right: Reals) -> None:
        """Count a picture [H, W, C]."""
        given = np.clip(np.nan_to_num(given), 0.0, 1.0)
        self.samples += 1
        self.square += float(np.square(given - right).mean())
        self.similarity += similarity(given, right)

    @property
    def psnr(self) -> float:
        """Peak signal-to-noise ratio, dB; inf without errors."""
        return -10 * math.log10(self.square / self.samples) if self.square else math.inf

    @property
    def ssim(self) -> float:
        """Mean structural similarity."""
        return self.similarity / max(1, self.samples)


def similarity(first: Reals, second: Reals) -> float:
    """Return the structural similarity of pictures [H, W, C] of 0 to 1, the mean over places and channels.

    Windows are Gaussian, and lie inside; smaller pictures have smaller windows. Source: Wang et al. 2004.
    """
    means = [_blur(x) for x in (first, second)]
    squares = [_blur(a * b) for a, b in ((first, first), (second, second), (first, second))]
    variances = [squares[0] - means[0] ** 2, squares[1] - means[1] ** 2]
    together = squares[2] - means[0] * means[1]
    above = (2 * means[0] * means[1] + _SMALL[0]) * (2 * together + _SMALL[1])
    below = (means[0] ** 2 + means[1] ** 2 + _SMALL[0]) * (variances[0] + variances[1] + _SMALL[1])
    return float((above / below).mean())


def _blur(values: Reals) -> Reals:
    for axis in (0, 1):
        reach = min(_REACH, (values.shape[axis] - 1) // 2)
        weights = np.exp(-np.square(np.arange(-reach, reach + 1)) / (2 * _SIGMA**2))
        length = values.shape[axis] - 2 * reach
        parts = (np.take(values, range(k, k + length), axis) * w for k, w in enumerate(weights / weights.sum()))
        values = np.sum(list(parts), axis=0)
    return values


@dataclass(slots=True, eq=False)
class Fidelity:
    """Sums over all elements of all samples of one tensor: reference f and other q.

    The signal is what f carries about its mean over samples, element by element: a constant part does not depend on
    the input. Elements with a range of codes from `first` to `last` count as cut off beyond it.
    """

    name: str
    op: str  # the operator that produces it in the reference
    index: int  # the operator's index there
    first: float = -math.inf
    last: float = math.inf
    elements: int = 0
    samples: int = 0
    power: float = 0.0  # sum of f^2
    signal: float = 0.0  # sum of (f - its element's mean)^2
    noise: float = 0.0  # sum of (f - q)^2
    bias: float = 0.0  # sum of (q - f)
    largest: float = 0.0  # max of |f - q|
    low: float = math.inf  # min of f
    high: float = -math.inf  # max of f
    holders: tuple[int, int] = (-1, -1)  # the only samples that reach min and max, counted from 0; -1 if several do
    beyond: int = 0  # elements cut off
    cut: float = 0.0  # sum of their (f - q)^2
    means: Reals = field(default_factory=lambda: np.zeros(0))  # of each element so far

    def add(self, reference: Array, other: Array, scale: float = 1.0, zero_point: float = 0.0) -> None:
        """Count one sample's tensor; the values of `other` are scale * (other - zero_point)."""
        f, q = np.ascontiguousarray(reference).reshape(-1), np.ascontiguousarray(other).reshape(-1)
        if not self.samples:
            self.means = np.zeros(f.size)
        self.samples += 1
        if f.size != self.means.size:  # elements of several sizes have no means
            self.means = np.zeros(0)
        steady = self.means.size > 0
        means = self.means if steady else np.zeros(f.size)
        power, signal, noise, bias, largest, beyond, cut = _sums(
            f, q, scale, zero_point, means, self.samples if steady else 0, self.first, self.last
        )
        self.elements += f.size
        self.power += power
        self.signal += signal
        self.noise += noise
        self.bias += bias
        self.largest = max(self.largest, largest)
        self.beyond += int(beyond)
        self.cut += cut
        if f.size:
            self._stretch(float(f.min()), float(f.max()))

    def _stretch(self, low: float, high: float) -> None:
        """Widen the range, and note whose values are its ends."""
        now = self.samples - 1
        self.holders = (
            now if low < self.low else -1 if low == self.low else self.holders[0],
            now if high > self.high else -1 if high == self.high else self.holders[1],
        )
        self.low, self.high = min(self.low, low), max(self.high, high)

    @property
    def mean_error(self) -> float:
        """Mean of q - f over all elements."""
        return self.bias / self.elements if self.elements else 0.0

    @property
    def step(self) -> float:
        """The distance of two codes; infinite without a range of codes, which reaches half a step beyond either end."""
        return (self.last - self.first) / 256

    @property
    def spread(self) -> float:
        """Standard deviation of the reference's elements about their means over samples; NaN if it is not known."""
        freedom = self.elements * (self.samples - 1) / max(1, self.samples)
        return math.sqrt(self.signal / freedom) if freedom and self.means.size else math.nan

    @property
    def is_constant(self) -> bool:
        """True if the reference's elements are the same in all of several samples, up to rounding."""
        return self.spread <= ROUNDING * max(abs(self.low), abs(self.high))

    @property
    def judging(self) -> float:
        """The signal that noise is compared with: about the mean over samples, as expected of many samples.

        It is the whole power if that mean is not known (one sample), or if the reference is constant.
        """
        is_known = not math.isnan(self.spread) and not self.is_constant
        return self.signal * self.samples / (self.samples - 1) if is_known else self.power

    @property
    def sqnr(self) -> float:
        """10 log10(judging / noise), dB; inf without noise, -inf with noise but no signal."""
        if self.noise == 0:
            return math.inf
        return 10 * math.log10(self.judging / self.noise) if self.judging else -math.inf


@compiled
def _sums(
    f: Array, q: Array, scale: float, zero_point: float, means: Reals, samples: Int, first: float, last: float
) -> tuple[float, float, float, float, float, float, float]:
    """Return sums over a sample: f^2, f's squares about its means, error^2, error, the greatest |error|, what is cut.

    `means` are those of the elements in `samples`, this one included, and are updated (Welford 1962); without samples
    they stay. error = scale * (q - zero_point) - f. The last two are the number of f beyond first..last and their
    error^2. The caller guarantees: f, q and means have the same length. All sums are float64, in order.
    """
    power = signal = noise = bias = largest = beyond = cut = 0.0
    for k in range(f.shape[0]):
        value = np.float64(f[k])
        error = scale * (np.float64(q[k]) - zero_point) - value
        power += value * value
        noise += error * error
        bias += error
        largest = max(largest, abs(error))
        if samples > 0:
            off = value - means[k]
            means[k] += off / samples
            signal += off * (value - means[k])
        if value < first or value > last:
            beyond += 1.0
            cut += error * error
    return power, signal, noise, bias, largest, beyond, cut


Places = NDArray[np.int64] | slice

#: Distinct values are counted up to this number.
MOST_VALUES = 256
#: Most elements of an output that is a row of numbers, each of which is judged alone, too.
_MOST_COLUMNS = 64


@dataclass(slots=True, eq=False)
class OutputPart:
    """The elements of one output that operands of concatenations give.

    `output` is its position among the outputs, `places` are flat indices of its elements there. `values` are the
    distinct values of the other model's elements, up to MOST_VALUES of them; `given` those of the reference's.
    `column` is the position of the only element of a part that is one number of a row.
    """

    output: int
    places: Places
    fidelity: Fidelity
    values: set[float] = field(default_factory=set)
    given: set[float] = field(default_factory=set)
    column: int | None = None

    def add(self, reference: Array, other: Array, scale: float, zero_point: float) -> None:
        """Count one sample of the whole output; the values of `other` are scale * (other - zero_point)."""
        ours, theirs = (np.ascontiguousarray(a).reshape(-1)[self.places] for a in (reference, other))
        self.fidelity.add(ours, theirs, scale, zero_point)
        for known, values in ((self.given, ours), (self.values, theirs)):
            if len(known) < MOST_VALUES:
                known.update(np.unique(values)[:MOST_VALUES].tolist())


def parts_of(graph: GraphView, output: int, tensor: int) -> list[OutputPart]:
    """Return the parts of an output that a concatenation joins; none if there are fewer than two, or too many.

    Channels that the same tensors give at every anchor are one part: boxes of three scales are boxes.
    """
    groups = merge(groups_of(graph, output, tensor))
    if len(groups) < 2:
        return []
    return [OutputPart(output, np.sort(group.places.reshape(-1)), _name(graph, group.origins[0])) for group in groups]


def units_of(graph: GraphView, output: int, tensor: int) -> list[OutputPart]:
    """Return an output as a part of its own, and its numbers one by one if it is a row of a few that nothing joins."""
    count = int(np.prod(graph.tensors[tensor].shape))
    is_row = 1 < count <= _MOST_COLUMNS and graph.tensors[tensor].shape[-1] == count
    is_row = is_row and not parts_of(graph, output, tensor)
    columns = [
        OutputPart(output, slice(k, k + 1), _name(graph, tensor), column=k) for k in range(count if is_row else 0)
    ]
    return [OutputPart(output, slice(None), _name(graph, tensor)), *columns]


def _name(graph: GraphView, tensor: int) -> Fidelity:
    maker, name = graph.maker(tensor), graph.tensors[tensor].name or ""
    return Fidelity(name, "", -1) if maker is None else Fidelity(name, maker.builtin, maker.index)


@dataclass(frozen=True, slots=True)
class Flip:
    """A sample whose top-1 differs: both classes, and the reference's margin in its own units."""

    sample: int
    reference: int
    other: int
    margin: float


@dataclass(slots=True)
class DecisionAgreement:
    """The top-1 agreement of the first output, if it is a row of two or more scores."""

    samples: int = 0
    flips: list[Flip] = field(default_factory=list)
    divergence: float = 0.0  # sum over samples of KL(reference || other), nats; NaN if these are not distributions
    correct: tuple[int, int] = (0, 0)  # of reference and other, if labels are known
    labelled: int = 0
    gained: int = 0  # samples that only the other classifies right
    lost: int = 0  # samples that only the reference classifies right
    confusion: Counter[tuple[int, int]] = field(
        default_factory=Counter
    )  # of (right class, or the reference's; other's)
    tied: int = 0  # samples with ties for the other's largest output, but not for the reference's

    def add(self, reference: Reals, other: Reals, label: int | None) -> None:
        """Count one sample's scores."""
        before, after = int(reference.argmax()), int(other.argmax())
        if before != after:
            self.flips.append(Flip(self.samples, before, after, float(reference[before] - reference[after])))
        self.tied += _is_tied(other) and not _is_tied(reference)
        self.confusion[before if label is None else label, after] += 1
        self.samples += 1
        self.divergence += kl(reference, other)
        if label is not None:
            right = before == label, after == label
            self.labelled += 1
            self.correct = self.correct[0] + right[0], self.correct[1] + right[1]
            self.gained += right[1] and not right[0]
            self.lost += right[0] and not right[1]

    @property
    def rate(self) -> float:
        """The share of samples with the same top-1."""
        return 1 - len(self.flips) / self.samples

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `rate` (Wilson's score interval)."""
        return wilson(self.samples - len(self.flips), self.samples)

    @property
    def accuracies(self) -> tuple[float, float] | None:
        """Top-1 accuracy of reference and other, if there are labels."""
        return (self.correct[0] / self.labelled, self.correct[1] / self.labelled) if self.labelled else None

    @property
    def standard_error(self) -> float:
        """Paired standard error of the difference of the accuracies (McNemar's variance)."""
        n, gained, lost = self.labelled, self.gained, self.lost
        return math.sqrt(max(0.0, gained + lost - (gained - lost) ** 2 / n)) / n if n else math.nan


def _is_tied(scores: Reals) -> bool:
    return int(np.count_nonzero(scores == scores.max())) > 1


def wilson(hits: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Return wilson's score interval of a share; (0, 1) without trials."""
    if not trials:
        return 0.0, 1.0
    p, weight = hits / trials, z * z / trials
    middle = p + weight / 2
    half = z * math.sqrt(p * (1 - p) / trials + weight / (4 * trials))
    return max(0.0, (middle - half) / (1 + weight)), min(1.0, (middle + half) / (1 + weight))


def kl(reference: Reals, other: Reals, floor: float = 2.0**-20) -> float:
    """Return KL(reference || other) of two distributions in nats; entries below `floor` count as `floor`.

    The result is NaN if `reference` is not a distribution: it has a negative entry, or its sum differs from 1 by over 2
    %.
    """
    if reference.min() < 0 or abs(float(reference.sum()) - 1) > 0.02:
        return math.nan
    p, q = np.maximum(reference, floor), np.maximum(other, floor)
    return float(np.sum(p / p.sum() * np.log((p / p.sum()) / (q / q.sum()))))
