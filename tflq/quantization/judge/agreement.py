"""The share of samples on which two models decide alike: on the greatest score of the first output."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Flip:
    """A sample whose top-1 differs: both classes, and the reference's margin in its own units."""

    sample: int
    reference: int
    other: int
    margin: float


@dataclass(slots=True)
class Agreement:
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
