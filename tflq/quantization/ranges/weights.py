"""Choose ranges of weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.model.ir import TensorType
from tflq.quantization.params import Range, extent
from tflq.quantization.ranges.layers import Layer, layer_of
from tflq.quantization.ranges.losses import weights_loss
from tflq.quantization.ranges.observation import Observations
from tflq.quantization.ranges.observers import FirstSamples
from tflq.quantization.ranges.search.points import Points
from tflq.quantization.ranges.search.problem import Problem
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.ranges.search.ranges import search_range
from tflq.quantization.ranges.search.solvers import SOLVERS
from tflq.quantization.ranges.watching import Watching
from tflq.quantization.recipe.ranging import RangeRule, Search, Target
from tflq.quantization.recipe.recipe import TYPES
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.modes import REFERENCE_PROFILE
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import Scheme, Slot

#: Weights that one thread searches at a time: small enough that its arrays stay in the caches.
_AT_ONCE = 1 << 17


def weight_ranges(
    scheme: Scheme, search: Search | None, samples: Sequence[Sample], watching: Watching
) -> dict[Slot, Range]:
    """Return the range of each of a scheme's weights, one per channel.

    `samples` are read if the search measures outputs.
    """
    if search is None:
        return {(m.operator, m.position): extent(scheme.model.constants[m.tensor], m.axis) for m in scheme.multiplied}
    layers = layers_of(scheme, samples, watching) if search.target is Target.OUTPUT else {}
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // watching.jobs)) as pool:  # in each of the processes
        return {
            (m.operator, m.position): _search(scheme, m, search, layers.get(m.operator), pool)
            for m in scheme.multiplied
        }


def layers_of(scheme: Scheme, samples: Sequence[Sample], watching: Watching) -> dict[int, Layer]:
    """Return the operators of a scheme that multiply weights, with samples of their data in float, by index."""
    computed = [m for m in scheme.multiplied if m.data not in scheme.model.constants]
    begun = Observations.begin((m.data for m in computed), FirstSamples())
    observations = watching.observe(scheme.model, samples, begun)
    plan = make_plan(scheme.model.model, by_name(REFERENCE_PROFILE))
    kept = {t: first for t, (first,) in observations.of.items() if isinstance(first, FirstSamples)}
    layers = {m.operator: layer_of(plan, m, kept[m.data]) for m in computed}
    return {operator: layer for operator, layer in layers.items() if layer is not None}


def weights_quantizer(scheme: Scheme, weights: Multiplied) -> Quantizer:
    """Return the rule by which an operator's mode assigns codes to weights."""
    mode = scheme.modes[weights.operator]
    assert mode is not None  # only integer operators have weights here
    kind = TYPES[mode].weights
    return Quantizer(RangeRule.NUDGE if kind == TensorType.UINT8 else RangeRule.SYMMETRIC, kind)


def _search(scheme: Scheme, m: Multiplied, search: Search, layer: Layer | None, pool: ThreadPoolExecutor) -> Range:
    quantizer, values = weights_quantizer(scheme, m), scheme.model.constants[m.tensor]
    if layer is not None:
        start = extent(values, m.axis)
        problem = Problem(weights_loss(layer, m.axis, quantizer, search.objective), start, quantizer)
        return SOLVERS[search.solver](problem)
    points = Points.of_values(values, m.axis)
    parts = max(1, min(len(points.values), points.values.size // _AT_ONCE))
    solver = SOLVERS[search.solver]

    def of_rows(rows: NDArray[np.float64]) -> Range:
        return search_range(Points(rows, points.counts), quantizer, search.objective, solver)

    ranges = tuple(pool.map(of_rows, np.array_split(points.values, parts)))
    return Range(np.concatenate([r.low for r in ranges]), np.concatenate([r.high for r in ranges]))
