"""Golden section: search a minimum between two bounds by evaluations alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.params import Range
from tflq.quantization.ranges.search.problem import Problem, best_of

Reals = NDArray[np.float64]

_SECTION = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class GoldenSection:
    """One factor for both ends, between `least` and 1 on a logarithmic scale, narrowed `evaluations` times.

    It finds the minimum of a loss with a single valley, and one of several valleys otherwise. The start is kept if
    nothing better is found. Source: Kiefer 1953, "Sequential minimax search for a maximum".
    """

    evaluations: int = 24
    least: float = 2.0**-8

    def __call__(self, problem: Problem) -> Range:
        """Return the range at the end of the search."""
        rows = len(problem.start.low)
        factor_log = narrow(
            lambda factor: problem.loss(problem.scaled(np.exp(factor), np.exp(factor))),
            np.full(rows, math.log(self.least)),
            np.zeros(rows),
            self.evaluations,
        )
        return best_of(problem.loss, [problem.start, problem.scaled(np.exp(factor_log), np.exp(factor_log))])[0]


def narrow(loss: Callable[[Reals], Reals], low: Reals, high: Reals, evaluations: int) -> Reals:
    """Return the position of each row's least loss between its bounds, after this many evaluations."""
    left, right = high - _SECTION * (high - low), low + _SECTION * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(evaluations - 2):
        go_left = at_left <= at_right
        low, high = np.where(go_left, low, left), np.where(go_left, right, high)
        fresh = np.where(go_left, high - _SECTION * (high - low), low + _SECTION * (high - low))
        lost = loss(fresh)
        left, right = np.where(go_left, fresh, right), np.where(go_left, left, fresh)
        at_left, at_right = np.where(go_left, lost, at_right), np.where(go_left, at_left, lost)
    return np.where(at_left <= at_right, left, right)
