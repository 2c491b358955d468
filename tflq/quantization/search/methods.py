"""How ranges are chosen, as a recipe says it."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.quantization.search.choices import Order, Solving, Target, Watch
from tflq.quantization.search.laying import RangeRule
from tflq.quantization.search.objectives import Objective


@dataclass(frozen=True, slots=True)
class Search:
    """What a range is to minimize, measured where, and how it is found."""

    objective: Objective = Objective.L2
    solver: Solving = Solving.GRID
    target: Target = Target.VALUES


@dataclass(frozen=True, slots=True)
class Ranging:
    """How the ranges of activations and weights are chosen; without a search they are what is observed.

    With `two_passes` a first pass over the samples finds the ranges within which the second one counts.
    """

    watch: Watch = Watch.MIN_MAX
    rule: RangeRule = RangeRule.NUDGE
    activations: Search | None = None
    weights: Search | None = None
    order: Order = Order.FLOAT
    two_passes: bool = False
