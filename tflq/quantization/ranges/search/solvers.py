"""The solver for each of the recipe's words."""

from __future__ import annotations

from tflq.quantization.ranges.search.alternation import AlternatingCodes, AlternatingEnds
from tflq.quantization.ranges.search.golden_section import GoldenSection
from tflq.quantization.ranges.search.grid import Grid
from tflq.quantization.ranges.search.octav import Octav
from tflq.quantization.ranges.search.problem import Solver
from tflq.quantization.recipe.ranging import Solving

SOLVERS: dict[Solving, Solver] = {
    Solving.GRID: Grid(),
    Solving.GOLDEN_SECTION: GoldenSection(),
    Solving.ALTERNATING_ENDS: AlternatingEnds(),
    Solving.ALTERNATING_CODES: AlternatingCodes(),
    Solving.OCTAV: Octav(),
}
