"""Try factors on a grid, then finer ones around the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

import numpy as np

from tflq.quantization.params import Range
from tflq.quantization.ranges.search.problem import Problem, one_ended


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of factors from 1 down to `least` in equal ratios.

    If both ends move together, there are `factors` of them. If each moves alone, the grid has all pairs of `pairs` such
    factors. The second sweep divides one ratio up and one down from the best into `fine` factors.
    """

    factors: int = 96
    pairs: int = 20
    fine: int = 11
    least: float = 2.0**-8

    def __call__(self, problem: Problem) -> Range:
        """Return the best range of the grid, which includes the start."""
        together = one_ended(problem)
        count = self.factors if together else self.pairs
        ratio = self.least ** (1 / (count - 1))
        coarse = _pairs(ratio ** np.arange(count), together)
        best = problem.best(problem.scaled(a, b) for a, b in coarse)
        near = _pairs(ratio ** np.linspace(-1, 1, self.fine), together)
        around = (Range(best.low * a, best.high * b) for a, b in near)
        return problem.best(chain([best], around))


def _pairs(factors: np.ndarray[tuple[int], np.dtype[np.float64]], together: bool) -> Iterator[tuple[float, float]]:
    return zip(factors, factors, strict=True) if together else product(factors, factors)
