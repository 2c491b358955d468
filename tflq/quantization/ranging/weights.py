"""Ranges of weights."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tflq.interpreter import make_plan
from tflq.ir import TensorType
from tflq.profiles import by_name
from tflq.quantization.observe import Observations, observe
from tflq.quantization.observers import Kept
from tflq.quantization.operands import Multiplied
from tflq.quantization.params import Range, extent
from tflq.quantization.ranging.layers import Layer, layer_of
from tflq.quantization.ranging.losses import weights_loss
from tflq.quantization.recipe import TYPES
from tflq.quantization.runner import Sample
from tflq.quantization.scheme import KERNELS, Scheme, Slot
from tflq.quantization.search.choices import SOLVERS, Target
from tflq.quantization.search.laying import Laying, RangeRule
from tflq.quantization.search.methods import Search
from tflq.quantization.search.points import Points
from tflq.quantization.search.problem import Problem
from tflq.quantization.search.ranges import search_range

#: Weights that one thread searches at a time: its arrays stay small enough for the caches.
_AT_ONCE = 1 << 17


def weight_ranges(scheme: Scheme, search: Search | None, samples: Iterable[Sample] = ()) -> dict[Slot, Range]:
    """The range of each of a scheme's weights, one for each of their channels. `samples` are looked at where the search
    aims at outputs.
    """
    if search is None:
        return {(m.operator, m.position): extent(scheme.model.constants[m.tensor], m.axis) for m in scheme.multiplied}
    layers = layers_of(scheme, samples) if search.target is Target.OUTPUT else {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {
            (m.operator, m.position): _searched(scheme, m, search, layers.get(m.operator), pool)
            for m in scheme.multiplied
        }


def layers_of(scheme: Scheme, samples: Iterable[Sample]) -> dict[int, Layer]:
    """The operators of a scheme that multiply weights, with samples of their data in float, by index."""
    computed = [m for m in scheme.multiplied if m.data not in scheme.model.constants]
    seen = observe(scheme.model.model, samples, Observations.begin((m.data for m in computed), Kept()))
    plan = make_plan(scheme.model.model, by_name(KERNELS))
    kept = {t: held for t, (held,) in seen.of.items() if isinstance(held, Kept)}
    found = {m.operator: layer_of(plan, m, kept[m.data]) for m in computed}
    return {operator: layer for operator, layer in found.items() if layer is not None}


def weights_laying(scheme: Scheme, weights: Multiplied) -> Laying:
    """How an operator's mode lays codes over weights."""
    mode = scheme.modes[weights.operator]
    assert mode is not None  # only integer operators have weights here
    kind = TYPES[mode].weights
    return Laying(RangeRule.NUDGE if kind == TensorType.UINT8 else RangeRule.SYMMETRIC, kind)


def _searched(scheme: Scheme, m: Multiplied, search: Search, layer: Layer | None, pool: ThreadPoolExecutor) -> Range:
    laying, values = weights_laying(scheme, m), scheme.model.constants[m.tensor]
    if layer is not None:
        start = extent(values, m.axis)
        problem = Problem(weights_loss(layer, m.axis, laying, search.objective), start, laying)
        return SOLVERS[search.solver](problem)
    points = Points.of_values(values, m.axis)
    parts = max(1, min(len(points.values), points.values.size // _AT_ONCE))
    rows = np.array_split(points.values, parts)
    found = pool.map(
        lambda part: search_range(Points(part, points.counts), laying, search.objective, SOLVERS[search.solver]), rows
    )
    ranges = tuple(found)
    return Range(np.concatenate([r.low for r in ranges]), np.concatenate([r.high for r in ranges]))
