"""Weights and biases refined operator by operator, in the order of execution.

Every operator is refined on what it will really see: the integer model, with all operators before it refined, runs on
the integer executor, and its codes are what the moments are taken of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tflq.ir import CARRIER
from tflq.quantization.assignment import assign
from tflq.quantization.compare import codes_of, real
from tflq.quantization.observe import Progress
from tflq.quantization.params import Array, Params, limits
from tflq.quantization.recipe import Recipe
from tflq.quantization.refine.adaround import adaround
from tflq.quantization.refine.bit_split import bit_split
from tflq.quantization.refine.gptq import gptq
from tflq.quantization.refine.linear import Linear, linear
from tflq.quantization.refine.methods import BiasCorrection, Refining, Rounding
from tflq.quantization.refine.moments import Moments, matched, moments
from tflq.quantization.refine.statistics import bias_correction, variance_ratio
from tflq.quantization.rewrite import rewritten
from tflq.quantization.runner import Runner, Sample, executor
from tflq.quantization.scheme import Form, Scheme, Slot

Reals = NDArray[np.float64]
#: Real codes [G, O, K] and second moments [G, K, K] to codes [G, O, K] within limits.
Rounder = Callable[[Reals, Reals, int, int], Reals]


def _nearest(targets: Reals, square: Reals, low: int, high: int) -> Reals:
    return np.clip(np.rint(targets), low, high)


ROUNDERS: Mapping[Rounding, Rounder] = {
    Rounding.NEAREST: _nearest,
    Rounding.GPTQ: gptq,
    Rounding.ADAROUND: adaround,
    Rounding.BIT_SPLIT: bit_split,
}


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """What `assign` takes: parameters of all weights, and codes and float biases of those that were refined."""

    weights: Mapping[Slot, Params]
    codes: Mapping[Slot, Array] = field(default_factory=dict)
    biases: Mapping[Slot, NDArray[np.float32]] = field(default_factory=dict)


def refined(
    scheme: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params], recipe: Recipe,
    methods: Refining, samples: Iterable[Sample], progress: Progress | None = None,
) -> Refined:  # fmt: skip
    """Refine the weights of all operators that are matrix products and whose weights nothing else reads."""
    known = list(islice(samples, methods.samples))
    state = Refined(weights)
    uses = Counter(t for o in scheme.model.graph.operators for t in o.inputs)
    todo = [
        found
        for m in scheme.multiplied
        if uses[m.tensor] == 1 and (m.bias is None or uses[m.bias] == 1) and (found := linear(scheme.model, m))
    ]
    for done, one in enumerate(todo):
        seen = moments(one, _inputs(scheme, activations, state, recipe, one, known), squares=methods.needs_squares)
        state = _with(scheme, state, one, seen, methods)
        if progress is not None:
            progress("refining", done + 1, len(todo))
    return state


def _inputs(
    scheme: Scheme, activations: Mapping[Form, Params], state: Refined, recipe: Recipe, one: Linear,
    samples: list[Sample],
) -> Iterator[tuple[Array, Array]]:  # fmt: skip
    """What the operator reads in the float model and in the integer model as it stands, both as real values."""
    m, floats = one.multiplied, scheme.model.graph
    result = rewritten(assign(scheme, activations, state.weights, recipe, state.codes, state.biases))
    graph = result.model.subgraphs[0]
    reader = graph.operators[result.operators.index(m.operator)]
    read = reader.inputs[floats.operators[m.operator].inputs.index(m.data)]
    given = [
        {new: codes_of(graph.tensors[new], sample[old]) for old, new in zip(floats.inputs, graph.inputs, strict=True)}
        for sample in samples
    ]
    before = Runner(scheme.model.model, [m.data]).each(samples)
    after = Runner(result.model, [read], executor(result.model, recipe.executor)).each(given)
    for f, q in zip(before, after, strict=True):
        yield f[m.data], real(graph.tensors[read], q[read]).astype(np.float32)


def _with(scheme: Scheme, state: Refined, one: Linear, seen: Moments, methods: Refining) -> Refined:
    """The state with one operator refined."""
    m = one.multiplied
    slot, bias_slot = (m.operator, m.position), (m.operator, m.bias_position)
    params = state.weights[slot]
    floats = one.matrix(scheme.model.constants[m.tensor]).astype(np.float64)
    bias = None if m.bias is None else scheme.model.constants[m.bias]
    corrects = bias is not None and methods.bias != BiasCorrection.NONE
    codes = _rounded(one, floats, params, seen.centred() if corrects else seen, methods)
    if methods.match_variance and params.scale.size > 1:
        ratio = variance_ratio(floats, _values(one, codes, params), seen).reshape(-1)
        params = replace(params, scale=(params.scale * ratio).astype(np.float32))
    biases = dict(state.biases)
    if bias is not None:
        biases[bias_slot] = bias
        if corrects:
            missing = bias_correction(methods.bias, floats, _values(one, codes, params), seen)
            biases[bias_slot] = (bias + missing.reshape(bias.shape)).astype(np.float32)
    return Refined({**state.weights, slot: params}, {**state.codes, slot: one.weights(codes)}, biases)


def _rounded(one: Linear, floats: Reals, params: Params, seen: Moments, methods: Refining) -> Array:
    """Codes [G, O, K] in the weights' type."""
    scale, zero_point = _along(one, params)
    low, high = limits(params.type)
    wanted = matched(floats, seen.float_integer, seen.integer_integer) if methods.match_inputs else floats
    codes = ROUNDERS[methods.rounding](wanted / scale + zero_point, seen.integer_integer, low + params.narrow, high)
    return codes.astype(CARRIER[params.type])


def _values(one: Linear, codes: Array, params: Params) -> Reals:
    """What codes [G, O, K] stand for."""
    scale, zero_point = _along(one, params)
    return (codes - zero_point) * scale


def _along(one: Linear, params: Params) -> tuple[Reals, Reals]:
    """Scale and zero point by group and output channel, [G, O, 1]."""
    channels = one.shape[3] if one.depthwise else one.shape[0]
    scale, zero_point = (
        np.broadcast_to(v.astype(np.float64), channels).reshape(one.groups, -1, 1)
        for v in (params.scale, params.zero_point)
    )
    return scale, zero_point
