"""Ranges of weights, and scales for which biases fit.

Choose ranges of weights.

Biases: the unit of an accumulator, and scales of weights for which a bias fits its type.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.model.ir import TensorType
from tflq.quantization.frontier import Sample
from tflq.quantization.params import Params, Range, extent
from tflq.quantization.ranges.choice import OperatorLayer, layer_of, weights_loss
from tflq.quantization.ranges.objectives import Points, Quantizer
from tflq.quantization.ranges.observers import FirstSamples
from tflq.quantization.ranges.search import SOLVERS, Problem, search_range
from tflq.quantization.ranges.watching import Observations, Watching
from tflq.quantization.recipe import TYPES, Mode, RangeRule, RangeTarget, Search
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import REFERENCE_PROFILE, Form, Scheme, Slot
from tflq.typing import Array

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
    layers = layers_of(scheme, samples, watching) if search.target is RangeTarget.OUTPUT else {}
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // watching.jobs)) as pool:  # in each of the processes
        return {
            (m.operator, m.position): _search(scheme, m, search, layers.get(m.operator), pool)
            for m in scheme.multiplied
        }


def layers_of(scheme: Scheme, samples: Sequence[Sample], watching: Watching) -> dict[int, OperatorLayer]:
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


def _search(
    scheme: Scheme, m: Multiplied, search: Search, layer: OperatorLayer | None, pool: ThreadPoolExecutor
) -> Range:
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


#: The greatest code of a bias: half of the accumulator's range, which leaves the other half to the products. The wide
#: one is half of the input range of the requantization of 64-bit accumulators.
#: Source: LiteRT 2.3 quantization_driver.cc kBiasMax; MultiplyByQuantizedMultiplier of int64, which takes 48 bits.
BIAS_REACH: Mapping[TensorType | None, int] = {TensorType.INT32: 2**30, TensorType.INT64: 2**46}
#: The greatest code of the bias in a channel whose weights are all zero, in that channel's own scale.
BIAS_ALONE = 2**15

RAISED = "scales of weights are raised so that the bias fits its type"


def bias_params(weights: Params, data: Params, type_: TensorType) -> Params:
    """Return the parameters of a bias, whose unit is the accumulator's: the float32 product of both scales.

    Under even weights it is odd, so that every accumulator is odd.

    Source: LiteRT 2.3 kernel_util.cc GetQuantizedConvolutionMultipler, which refuses others.
    """
    scale = (weights.scale * data.scale).astype(np.float32)
    return Params(type_, scale, np.zeros(scale.size, np.int64), 0, stride=weights.stride, residue=weights.stride - 1)


def data_params(scheme: Scheme, m: Multiplied, activations: Mapping[Form, Params]) -> Params:
    """Return the parameters of the activations that an operator multiplies by its weights."""
    position = scheme.model.graph.op(m.operator).inputs.index(m.data)
    return activations[scheme.read[m.operator, position]]


def fitted_weights(
    scheme: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params]
) -> dict[Slot, Params]:
    """Return the parameters of all weights, with scales under which every constant bias fits its type."""
    result = dict(weights)
    for m in scheme.multiplied:
        bias = None if m.bias is None else scheme.model.constants.get(m.bias)
        if bias is not None:
            slot, reach = (m.operator, m.position), BIAS_REACH[TYPES[mode_of(scheme, m)].bias]
            values, data = scheme.model.constants[m.tensor], data_params(scheme, m, activations)
            result[slot] = fitting(weights[slot], values, bias, data, reach)
    return result


def raised(before: Mapping[Slot, Params], after: Mapping[Slot, Params]) -> dict[int, str]:
    """Return a note, by index, for operators whose weights lost steps to their bias."""
    return {slot[0]: RAISED for slot in before if after[slot] is not before[slot]}


def fitting(weights: Params, values: Array, bias: NDArray[np.float32], data: Params, reach: int) -> Params:
    """Return `weights` with raised scales if the bias would exceed `reach` in the accumulator's unit.

    A channel whose weights are all zero gets the scale that gives its bias BIAS_ALONE steps. If nothing changes, the
    same object is returned.
    """
    step = data.scale.astype(np.float64)
    size = np.abs(bias.astype(np.float64).reshape(-1))
    if weights.scale.size == 1:
        size = size.max(initial=0.0, keepdims=True)
    channels = extent(values, weights.axis if weights.scale.size > 1 else None)
    alone = (channels.low == 0) & (channels.high == 0) & (size > 0)
    scale = np.where(size > step * weights.scale * reach, size / step / reach, weights.scale)
    scale = np.where(alone, size / step / BIAS_ALONE, scale).astype(np.float32)
    return weights if np.array_equal(scale, weights.scale) else replace(weights, scale=scale)


def mode_of(scheme: Scheme, weights: Multiplied) -> Mode:
    """Return the mode of the operator that multiplies these weights."""
    mode = scheme.modes[weights.operator]
    assert mode is not None  # float operators have no Multiplied
    return mode
