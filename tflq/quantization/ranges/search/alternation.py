"""Optimize one variable while the other is fixed, in turn, until patience ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import OptionError
from tflq.quantization.params import Range
from tflq.quantization.ranges.search.golden_section import GoldenSection, narrow
from tflq.quantization.ranges.search.octav import Octav
from tflq.quantization.ranges.search.problem import Problem, best_of, one_ended

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Patience:
    """The rule that ends a search after `patience` iterations without improvement, at the latest after `rounds`.

    An iteration without improvement is one in which no row lost less than (1 - tolerance) of its best.
    """

    patience: int = 2
    tolerance: float = 1e-3
    rounds: int = 20

    def improve(self, start: Range, loss: Callable[[Range], Reals], step: Callable[[Range], Range]) -> Range:
        """Return the best range, row by row, of those reached by repeated steps from `start`."""
        best, least, current, waited = start, loss(start), start, 0
        for _ in range(self.rounds):
            current = step(current)
            target = least * (1 - self.tolerance)
            best, least = best_of(loss, [best, current])
            waited = 0 if np.any(least < target) else waited + 1
            if waited == self.patience:
                break
        return best


@dataclass(frozen=True, slots=True)
class AlternatingEnds:
    """Search the low end by golden section with a fixed high end, then the high end, and repeat."""

    until: Patience = Patience()
    evaluations: int = 14
    least: float = 2.0**-8

    def __call__(self, problem: Problem) -> Range:
        """Return the best range found; if only one end moves, the result of golden section."""
        if one_ended(problem):
            return GoldenSection(2 * self.evaluations, self.least)(problem)
        return self.until.improve(problem.start, problem.loss, lambda current: self._round(problem, current))

    def _round(self, problem: Problem, current: Range) -> Range:
        rows = len(current.low)
        bounds = np.full(rows, math.log(self.least)), np.zeros(rows)
        start = problem.start
        low = start.low * np.exp(
            narrow(lambda f: problem.loss(Range(start.low * np.exp(f), current.high)), *bounds, self.evaluations)
        )
        high = start.high * np.exp(
            narrow(lambda f: problem.loss(Range(low, start.high * np.exp(f))), *bounds, self.evaluations)
        )
        return Range(low, high)


@dataclass(frozen=True, slots=True)
class AlternatingCodes:
    """Round to codes by a scale, fit the scale to the codes by least squares, and repeat from OCTAV's range.

    With codes q and zero point z of values x the fit is s = sum p x (q - z) / sum p (q - z)^2.

    Source: Lloyd 1982, "Least squares quantization in PCM", with levels kept equidistant.
    """

    until: Patience = Patience()

    def __call__(self, problem: Problem) -> Range:
        """Return the best range found."""
        points = problem.points
        if points is None:
            raise OptionError("fits scales to values, not to an operator's output", name="AlternatingCodes")

        def fitted(current: Range) -> Range:
            near = problem.quantizer.nearest(points.values, current)
            square = (points.counts * np.square(near)).sum(axis=1)
            product = (points.counts * points.values * near).sum(axis=1)
            factor = np.divide(product, square, out=np.ones_like(square), where=square > 0)
            return Range(current.low * factor, current.high * factor)

        best = self.until.improve(Octav()(problem), problem.loss, fitted)
        return best_of(problem.loss, [problem.start, best])[0]
