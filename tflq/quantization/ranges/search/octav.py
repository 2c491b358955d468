"""OCTAV: balance the cost of rounding and of clipping by Newton's iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import OptionError
from tflq.quantization.params import Range
from tflq.quantization.ranges.search.problem import Problem


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
