"""Search for the range that a tensor's codes cover, by five solvers.

Search for the range that a tensor's codes cover: points of data, losses of a range, and solvers.

A search for a range: the loss of each range, the start, and the ends that may move.

Golden section: search a minimum between two bounds by evaluations alone.

OCTAV: balance the cost of rounding and of clipping by Newton's iteration.

Optimize one variable while the other is fixed, in turn, until patience ends.

Try factors on a grid, then finer ones around the best.

The entry point of the search: from points to the range with the least loss.

The solver for each of the recipe's words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product

import numpy as np

from tflq.errors import OptionError
from tflq.quantization.params import Range
from tflq.quantization.ranges.objectives import Loss, Points, Quantizer, loss
from tflq.quantization.recipe import Objective, Solving
from tflq.typing import Reals

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


@dataclass(frozen=True, slots=True)
class Octav:
    """Least expected square error of uniform rounding noise inside and clipping outside.

    Both ends shrink by one factor t. With the ends a < 0 < b at t = 1, n steps between them and weights p:

        t' = (sum_{x > tb} p b x + sum_{x < ta} p a x)
           / (sum_{inside, x != 0} p (b - a)^2 / (12 n^2) + sum_{x > tb} p b^2 + sum_{x < ta} p a^2)

    For b = -a this is the published iteration.

    Source: Sakr et al. 2022 (arXiv:2206.06501).
    """

    iterations: int = 40

    def __call__(self, problem: Problem) -> Range:
        """Return the range at the fixed point; the loss of the problem is ignored."""
        if problem.points is None:
            raise OptionError("reads values, not an operator's output", name="Octav")
        quantizer, values = problem.quantizer, problem.points.values
        ends = _ends(problem.start, quantizer.one_sided)
        low, high = ends.low[:, None], ends.high[:, None]
        counts = np.broadcast_to(problem.points.counts, values.shape)
        steps = quantizer.codes[1] - quantizer.codes[0]
        noise = (ends.high - ends.low) ** 2 / (12 * steps**2)
        size = np.maximum(ends.high, -ends.low)
        present = np.where(values != 0, counts, 0.0)
        factor = np.divide(
            (present * np.abs(values)).sum(axis=1), present.sum(axis=1) * size, out=np.ones_like(size), where=size > 0
        )
        for _ in range(self.iterations):
            t = factor[:, None]
            above, below = np.where(values > t * high, counts, 0.0), np.where(values < t * low, counts, 0.0)
            beyond = above.sum(axis=1) * ends.high**2 + below.sum(axis=1) * ends.low**2
            inside = (present - above - below).sum(axis=1)
            pull = ((above * values).sum(axis=1) * ends.high) + ((below * values).sum(axis=1) * ends.low)
            weight = inside * noise + beyond
            factor = np.divide(pull, weight, out=np.ones_like(pull), where=(weight > 0) & (pull > 0))
            factor = np.minimum(factor, 1.0)
        return Range(ends.low * factor, ends.high * factor)


def _ends(start: Range, one_sided: bool) -> Range:
    """Return the start widened to hold 0; if one magnitude defines the range, symmetric around 0."""
    low, high = np.minimum(start.low, 0.0), np.maximum(start.high, 0.0)
    if not one_sided:
        return Range(low, high)
    size = np.maximum(-low, high)
    return Range(-size, size)


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


@dataclass(frozen=True, slots=True)
class GridSearch:
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


def search_range(
    points: Points, quantizer: Quantizer, objective: Objective, solver: Solver, start: Range | None = None
) -> Range:
    """Return the range of each row of `points`, searched from `start` inwards.

    If `start` is None, the search starts with the range from the least to the greatest value.
    """
    start = points.range if start is None else start
    return solver(Problem(loss(points, quantizer, objective), start, quantizer, points))


SOLVERS: dict[Solving, Solver] = {
    Solving.GRID: GridSearch(),
    Solving.GOLDEN_SECTION: GoldenSection(),
    Solving.ALTERNATING_ENDS: AlternatingEnds(),
    Solving.ALTERNATING_CODES: AlternatingCodes(),
    Solving.OCTAV: Octav(),
}
