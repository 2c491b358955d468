"""Detections that a model's outputs mean, and how many of the right ones are among them (mAP).

Source of the measure: COCO's average precision with 101 recall points (pycocotools COCOeval), without its areas and
crowds; greedy suppression by class at an overlap of 0.6, 100 detections a picture, scores above 0.01.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.anchors import READ, Reading, Row
from tflq.quantization.boxes import Form, corners, overlaps

Reals = NDArray[np.float64]

#: Scores below this are no detections; boxes that overlap a better one of their class by more are the same.
LEAST, SAME = 0.01, 0.6
#: Candidates and detections of a picture.
_CANDIDATES, _MOST = 300, 100
#: Overlaps from which on a detection is right.
OVERLAPS = np.linspace(0.5, 0.95, 10)
_RECALLS = np.linspace(0, 1, 101)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Detections of a picture: corners [4, M] (x, y, x, y), scores [M] falling, classes [M]."""

    boxes: Reals
    scores: Reals
    classes: NDArray[np.int64]

    def read(self, least: float = READ) -> Found:
        """Return the detections with scores of at least `least`."""
        kept = self.scores >= least
        return Found(self.boxes[:, kept], self.scores[kept], self.classes[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The right objects of a picture: corners [4, K] and classes [K]."""

    boxes: Reals
    classes: NDArray[np.int64]


def boxes_of(reading: Reading) -> tuple[int, int] | None:
    """Return the groups of the first decoded boxes and of their scores; None if there are none."""
    decoded = [k for k, form in reading.forms.items() if form is not Form.DISTANCES]
    pairs = ((k, judge) for k, judge in enumerate(reading.judges) if judge is not None and k in decoded)
    return next(pairs, None)


def found_in(reading: Reading, row: Row) -> Found:
    """Return the detections of one sample, after suppression; its layout has boxes (`boxes_of`)."""
    groups = boxes_of(reading)
    assert groups is not None  # the caller checked it
    boxes = corners(reading.values(groups[0], row), reading.forms[groups[0]])
    return suppress(boxes, reading.classes(groups[1], row))


def suppress(boxes: Reals, scores: Reals) -> Found:
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
    return Found(near[:, kept], scores[classes[kept], places[kept]], classes[kept].astype(np.int64))


def mean_precision(found: Sequence[Found], right: Sequence[Objects]) -> tuple[float, float]:
    """Return mAP at an overlap of 0.5, and its mean over 0.5 to 0.95; the mean over classes that occur. NaN if none."""
    classes = sorted({int(c) for objects in right for c in objects.classes})
    curves = np.array([_precisions(found, right, c) for c in classes]).reshape(-1, len(OVERLAPS))
    return (float(curves[:, 0].mean()), float(curves.mean())) if classes else (np.nan, np.nan)


def _precisions(found: Sequence[Found], right: Sequence[Objects], kind: int) -> Reals:
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

    def add(self, reference: Found, other: Found) -> None:
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
