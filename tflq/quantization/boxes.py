"""Boxes as detectors write them: the form of their four numbers, found from the values themselves."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

#: Errors of boxes are measured in this share of the box's size: it costs about one of the overlaps from 0.5 to 0.95.
UNIT = 0.1
#: Distributions of distances have at least this number of bins.
BINS = 8
#: Share of the boxes that are read that must suit a form.
_MOST = 0.98


class Form(Enum):
    """The meaning of four numbers.

    CORNERS: two corners. CENTRE: the centre and the size. DISTANCES: those of the four sides from an anchor, as means
    of distributions. DELTAS: none of these is known.
    """

    CORNERS = "corners"
    CENTRE = "centre"
    DISTANCES = "distances"
    DELTAS = "deltas"


def form_of(boxes: Reals, weights: Reals) -> Form:
    """Return the form of boxes [4, N]; only those with positive weights [N] count.

    Two corners if the second lies beyond the first; else a centre and a size if sizes are positive, and boxes reach
    hardly below 0. Encoded offsets from anchors are as often negative as positive, and are neither.
    """
    read = boxes[:, weights > 0]
    if read.shape[1] == 0 or not np.isfinite(read).all():
        return Form.DELTAS
    first, second = read[:2], read[2:]
    if np.mean((second > first).all(axis=0)) >= _MOST and np.mean(second > 0) >= _MOST:
        extent = max(float(second.max()), 1e-30)
        if np.mean(first >= -0.25 * extent) >= _MOST:
            return Form.CORNERS
    size = np.maximum(second, 0.0)
    inside = (first > 0) & (first - size / 2 >= -0.5 * size - 0.05 * max(float(first.max()), 1e-30))
    return Form.CENTRE if np.mean((second > 0) & inside) >= _MOST else Form.DELTAS


def corners(boxes: Reals, form: Form) -> Reals:
    """Return boxes [4, N] as two corners."""
    if form is not Form.CENTRE:
        return boxes
    half = boxes[2:] / 2
    return np.concatenate([boxes[:2] - half, boxes[:2] + half])


def units(boxes: Reals, form: Form) -> Reals:
    """Return UNIT of the size of each box along each coordinate [4, N]."""
    size = boxes[2:] + boxes[:2] * {Form.CORNERS: -1, Form.CENTRE: 0, Form.DISTANCES: 1, Form.DELTAS: 0}[form]
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
