"""A search for a range: the loss of each range, the start, and the ends that may move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range
from tflq.quantization.ranges.search.objectives import Loss
from tflq.quantization.ranges.search.points import Points
from tflq.quantization.ranges.search.quantizer import Quantizer

Reals = NDArray[np.float64]

#: Candidates for a row of points that are tried at once: their intermediate arrays stay in the caches.
_TOGETHER = 16


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Find the range [C] near `start` with the least loss, independently for each row.

    `points` are given if the loss depends only on values; a loss of an operator's output has none.
    """

    loss: Loss
    start: Range
    quantizer: Quantizer
    points: Points | None = None

    def best(self, candidates: Iterable[Range]) -> Range:
        """Return the candidate with the least loss, row by row; the first one wins ties."""
        if self.points is None or len(self.points.values) > 1:
            return best_of(self.loss, candidates)[0]
        stream, best_of_each = iter(candidates), []
        while several := list(islice(stream, _TOGETHER)):
            best_of_each.append(self._best_of_row(several))
        return self._best_of_row(best_of_each)

    def _best_of_row(self, candidates: Sequence[Range]) -> Range:
        """Return the best of candidates for a single row of points, tried all at once."""
        ranges = Range(*(np.concatenate(ends) for ends in zip(*((c.low, c.high) for c in candidates), strict=True)))
        return candidates[int(np.argmin(self.loss(ranges)))]

    def scaled(self, low: Reals | float, high: Reals | float) -> Range:
        """Return the start with its ends multiplied."""
        return Range(self.start.low * low, self.start.high * high)


def one_ended(problem: Problem) -> bool:
    """Return whether a single factor is enough: one magnitude counts, or one of the ends is 0 in every row."""
    start = problem.start
    return problem.quantizer.one_sided or bool(np.all((start.low == 0) | (start.high == 0)))


#: A function that solves a problem.
Solver = Callable[[Problem], Range]


def best_of(loss: Loss, candidates: Iterable[Range]) -> tuple[Range, Reals]:
    """Return the candidate with the least loss, row by row, and this loss; the first one wins ties."""
    low, high, least = np.zeros(0), np.zeros(0), np.zeros(0)
    for candidate in candidates:
        lost = loss(candidate)
        if not least.size:
            low, high, least = candidate.low, candidate.high, lost
            continue
        better = lost < least
        low, high = np.where(better, candidate.low, low), np.where(better, candidate.high, high)
        least = np.where(better, lost, least)
    return Range(low, high), least
