"""The entry point of the search: from points to the range with the least loss."""

from __future__ import annotations

from tflq.quantization.params import Range
from tflq.quantization.ranges.search.objectives import loss
from tflq.quantization.ranges.search.points import Points
from tflq.quantization.ranges.search.problem import Problem, Solver
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.recipe.ranging import Objective


def search_range(
    points: Points, quantizer: Quantizer, objective: Objective, solver: Solver, start: Range | None = None
) -> Range:
    """Return the range of each row of `points`, searched from `start` inwards.

    If `start` is None, the search starts with the range from the least to the greatest value.
    """
    start = points.range if start is None else start
    return solver(Problem(loss(points, quantizer, objective), start, quantizer, points))
