"""Measures of pictures and masks: mean intersection over union, signal-to-noise ratio, structural similarity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

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
