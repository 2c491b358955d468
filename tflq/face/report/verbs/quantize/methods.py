"""A configuration of methods in one line."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.quantization.judge.selection import Left
from tflq.quantization.recipe.ranging import Order, RangeRule, Ranging, Search, Solving, Target
from tflq.quantization.recipe.recipe import Methods
from tflq.quantization.recipe.refining import BiasCorrection, Refining, Rounding


def methods_text(methods: Methods) -> str:
    """Return the methods in the order in which they act; defaults are left out."""
    steps = [] if methods.equalize is None else [f"equalize {methods.equalize:g}"]
    return ", ".join([*steps, *_ranging(methods.ranging), *_refining(methods.refining)])


def left_text(left: Left) -> str:
    """Return when and why a configuration was dropped."""
    own = "its ranges alone " if left.ranges_alone else ""
    when = f"in the heat of {left.samples} samples"
    if left.turns:
        when = "after the first turn" if left.turns == 1 else f"after {left.turns} turns"
    return f"{own}lost {left.ratio:.1f} times as much as the best {when}"


def _ranging(ranging: Ranging) -> Iterator[str]:
    yield ranging.watch.value
    if ranging.activations is not None:
        yield f"activations {_search(ranging.activations)}"
    if ranging.weights is not None:
        yield f"weights {_search(ranging.weights)}"
    if ranging.rule != RangeRule.NUDGE:
        yield f"rule {ranging.rule.value}"
    if ranging.order != Order.FLOAT:
        yield ranging.order.value
    if ranging.two_passes:
        yield "two passes"


_TARGETS = {Target.VALUES: "", Target.OUTPUT: " of outputs", Target.SCORES: ", scores by KL divergence"}


def _search(search: Search) -> str:
    text = search.objective.value
    text += _TARGETS[search.target]
    return text if search.solver == Solving.GRID else f"{text} by {search.solver.value}"


def _refining(refining: Refining) -> Iterator[str]:
    if refining.rounding != Rounding.NEAREST:
        yield refining.rounding.value
    if refining.bias != BiasCorrection.NONE:
        yield f"{refining.bias.value} bias correction"
    if refining.match_inputs:
        yield "inputs matched"
    if refining.match_variance:
        yield "variance matched"
