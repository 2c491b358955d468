"""The front door of the search: from points to the range that loses least."""

from __future__ import annotations

from tflq.quantization.params import Range
from tflq.quantization.search.laying import Laying
from tflq.quantization.search.objectives import Objective, loss
from tflq.quantization.search.points import Points
from tflq.quantization.search.problem import Problem, Solver


def search_range(
    points: Points, laying: Laying, objective: Objective, solver: Solver, start: Range | None = None
) -> Range:  # fmt: skip
    """The range of each row of `points`, sought from `start` inwards (None: from the least to the greatest value)."""
    start = points.range if start is None else start
    return solver(Problem(loss(points, laying, objective), start, laying, points))
