"""Refine weights and biases operator by operator, in the order of execution.

Every operator is refined on its actual inputs. The integer model, with all earlier operators refined, runs on the
integer executor, and the moments are computed from its codes. Both models are traversed once: each operator runs on all
samples after those before it are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat

import numpy as np
from numpy.typing import NDArray

from tflq.interrupts import Progress
from tflq.model.ir import CARRIER, TensorType, view
from tflq.quantization.draft import IntegerModel
from tflq.quantization.frontier import ConstantTensor, Frontier, Sample, SampleStore, SharedValues, executor, together
from tflq.quantization.params import Params, codes_of
from tflq.quantization.ranges.weights import bias_params, data_params, mode_of
from tflq.quantization.recipe import TYPES, BiasCorrection, Refining, Rounding
from tflq.quantization.refine.moments import (
    MatrixProduct,
    Moments,
    Needed,
    bias_correction,
    damp,
    match,
    matrix_product,
    moments,
    variance_ratio,
)
from tflq.quantization.refine.rounding import adaround, bit_split, gptq, output_error
from tflq.quantization.scheme.scheme import Form, Scheme, Slot
from tflq.typing import Array, Floats, Reals

#: A function from real codes [G, O, K] and second moments [G, K, K] to codes [G, O, K] within limits.
Rounder = Callable[[Reals, Reals, int, int], Reals]
#: Sums of the float model's rows, [G, K], by operator.
FloatSums = Mapping[int, Reals]


def _nearest(targets: Reals, square: Reals, low: int, high: int) -> Reals:
    return np.clip(np.rint(targets), low, high)


ROUNDERS: Mapping[Rounding, Rounder] = {
    Rounding.NEAREST: _nearest,
    Rounding.GPTQ: gptq,
    Rounding.ADAROUND: adaround,
    Rounding.BIT_SPLIT: bit_split,
}

#: Scales of weights of four bits that are tried, as shares of the one that spans them.
CLIPS = np.linspace(1, 0.6, 9, dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Refinements:
    """Inputs of `assign`: parameters of all weights, and codes and float biases of the refined operators.

    `notes` describe, by operator, refinements that failed. `errors` are those of operators with weights of four bits:
    squared error of the results, relative to their squares.
    """

    weights: Mapping[Slot, Params]
    codes: Mapping[Slot, Array] = field(default_factory=dict)
    biases: Mapping[Slot, NDArray[np.float32]] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    errors: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RefinedOperator:
    """The subject of refinement: a scheme with parameters for all activations and weights, and its integer model.

    The integer model runs under `profile`. Weights in `kept`, by tensor, are rounded to nearest. The number of samples
    that run together is the same for models of one scheme: `shared` holds it.
    """

    scheme: Scheme
    activations: Mapping[Form, Params]
    weights: Mapping[Slot, Params]
    integer: IntegerModel
    profile: str
    kept: frozenset[int] = frozenset()
    shared: SharedValues = field(default_factory=SharedValues)


def refinable(scheme: Scheme) -> list[MatrixProduct]:
    """Return the matrix products with exclusive weights and bias, in the order of execution."""
    uses = scheme.model.graph.uses()
    own = (m for m in scheme.multiplied if uses[m.tensor] == 1 and (m.bias is None or uses[m.bias] == 1))
    return [product for m in own if (product := matrix_product(scheme.model, m)) is not None]


def refined(
    subject: RefinedOperator,
    methods: Refining,
    samples: Iterable[Sample],
    sums: FloatSums,
    progress: Progress | None = None,
) -> Refinements:
    """Refine the weights and biases of all refinable operators.

    `sums` are those of the float model over the same samples, at most `methods.samples` of which are looked at.
    """
    first = list(islice(samples, methods.samples))
    products = refinable(subject.scheme)
    needed = Needed(methods.match_variance, methods.match_inputs, methods.needs_squares)
    refinements = Refinements(subject.weights)
    with SampleStore() as store:
        walk = _Walk(subject, products, first, store, floats=needed.floats)
        for done, product in enumerate(products):
            unit, inputs = walk.inputs(product)
            statistics = moments(product, inputs, unit, sums[product.multiplied.operator], needed)
            own = methods
            if product.multiplied.tensor in subject.kept:
                own = Refining(bias=methods.bias, samples=methods.samples)
            refinements = _with(subject.scheme, refinements, product, statistics, own)
            walk.replace(product, refinements)
            if progress is not None:
                progress("refining operator", done + 1, len(products))
    return refinements


class _Walk:
    """Both models on their way through the operators."""

    def __init__(
        self,
        subject: RefinedOperator,
        products: Sequence[MatrixProduct],
        samples: Sequence[Sample],
        store: SampleStore,
        *,
        floats: bool,
    ) -> None:
        self._subject, scheme, integer = subject, subject.scheme, subject.integer
        self._operators = {o: index for index, o in enumerate(integer.operators) if o >= 0}
        self._integer_graph = view(integer.model)
        profile = executor(integer.model, subject.profile)
        pairs = list(zip(scheme.model.graph.inputs, self._integer_graph.inputs, strict=True))
        codes = [{n: codes_of(self._integer_graph.tensors[n], s[o]) for o, n in pairs} for s in samples]
        float_stops = [product.multiplied.operator for product in products]
        stops = [self._operators[stop] for stop in float_stops]
        key = "refining together", profile, scheme.modes, tuple(stops)
        size = subject.shared.once(key, lambda: together(integer.model, codes, stops, profile))
        self._floats: Frontier | None = None
        if floats:
            floating = "refining together", tuple(float_stops)
            model = scheme.model.model
            size = min(size, subject.shared.once(floating, lambda: together(model, samples, float_stops, "litert-ref")))
            self._floats = Frontier(scheme.model.model, samples, float_stops, "litert-ref", size, store)
        self._integer = Frontier(integer.model, codes, stops, profile, size, store)

    def inputs(self, product: MatrixProduct) -> tuple[float, Iterator[tuple[Floats, Floats | None]]]:
        """Return the step of an operator's input codes, and its inputs in steps and as float values, by batch."""
        m = product.multiplied
        stop = self._operators[m.operator]
        self._integer.advance(stop)
        position = self._subject.scheme.model.graph.op(m.operator).inputs.index(m.data)
        tensor = self._integer_graph.op(stop).inputs[position]
        spec = self._integer_graph.tensors[tensor]
        q = spec.quantization
        unit, zero = (1.0, 0) if spec.type == TensorType.FLOAT32 or q is None else (q.scale[0], q.zero_point[0])
        steps = (codes.astype(np.float32) - np.float32(zero) for codes in self._integer.values(tensor))
        if self._floats is None:
            return float(unit), zip(steps, repeat(None), strict=False)
        self._floats.advance(m.operator)
        return float(unit), zip(steps, self._floats.values(m.data), strict=True)

    def replace(self, product: MatrixProduct, refinements: Refinements) -> None:
        """Replace the constants of the integer model's operator by the refined ones."""
        scheme, m = self._subject.scheme, product.multiplied
        slot = (m.operator, m.position)
        weights = refinements.weights[slot]
        stop = self._operators[m.operator]
        stored = self._integer_graph.tensors[self._integer_graph.op(stop).inputs[m.position]].type
        codes = refinements.codes[slot]
        quantization = weights.quantization
        if weights.block:
            tensor = self._integer_graph.op(stop).inputs[m.position]
            quantization = self._integer_graph.tensors[tensor].quantization or quantization
        constants = {m.position: ConstantTensor(codes, quantization)}
        if stored == TensorType.FLOAT32:  # widened by DEQUANTIZE
            constants = {m.position: ConstantTensor(weights.decode(codes), None)}
        if m.bias is not None:
            type_ = TYPES[mode_of(scheme, m)].bias or TensorType.INT32
            unit = bias_params(weights, data_params(scheme, m, self._subject.activations), type_)
            bias = refinements.biases[m.operator, m.bias_position]
            constants[m.bias_position] = ConstantTensor(unit.encode(bias), unit.quantization)
        self._integer.change(stop, constants)


def _with(
    scheme: Scheme, refinements: Refinements, product: MatrixProduct, statistics: Moments, methods: Refining
) -> Refinements:
    """Return the refinements extended by one operator's."""
    m = product.multiplied
    slot, bias_slot = (m.operator, m.position), (m.operator, m.bias_position)
    params = refinements.weights[slot]
    floats = product.matrix(scheme.model.constants[m.tensor]).astype(np.float64)
    bias = None if m.bias is None else scheme.model.constants[m.bias]
    corrects = bias is not None and methods.bias != BiasCorrection.NONE
    notes = dict(refinements.notes)
    try:
        params, codes = _round(product, floats, params, statistics.centred() if corrects else statistics, methods)
    except np.linalg.LinAlgError as error:
        notes[m.operator] = f"weights rounded to nearest, {methods.rounding.value} fails on these inputs: {error}"
        params, codes = _round(product, floats, params, statistics, Refining())
    if methods.match_variance and params.scale.size > 1 and not params.block and params.stride == 1:
        ratio = variance_ratio(floats, _values(product, codes, params), statistics).reshape(-1)
        params = replace(params, scale=(params.scale * ratio).astype(np.float32))
    biases = dict(refinements.biases)
    if bias is not None:
        biases[bias_slot] = bias
        if corrects:
            missing = bias_correction(methods.bias, floats, _values(product, codes, params), statistics)
            biases[bias_slot] = (bias + missing.reshape(bias.shape)).astype(np.float32)
    errors = dict(refinements.errors)
    square = (statistics.centred() if corrects else statistics).integer_integer
    if params.type == TensorType.INT4 and square is not None:
        weight = damp(square)
        lost = output_error(_values(product, codes, params) - floats, weight).sum()
        errors[m.operator] = float(lost / max(output_error(floats, weight).sum(), 1e-300))
    return Refinements(
        {**refinements.weights, slot: params},
        {**refinements.codes, slot: product.weights(codes)},
        biases,
        notes,
        errors,
    )


def _round(
    product: MatrixProduct, floats: Reals, params: Params, statistics: Moments, methods: Refining
) -> tuple[Params, Array]:
    """Return the parameters and the codes [G, O, K] of weights, in their type.

    With four bits, each channel gets the one of CLIPS of its scale that has the least output error.
    """
    scale, zero_point = _along(product, params)
    low, high = (limit // params.stride for limit in params.limits)
    square = statistics.integer_integer
    targets = floats
    if methods.match_inputs and statistics.float_integer is not None and square is not None:
        targets = match(floats, statistics.float_integer, square)
    if params.type == TensorType.INT4 and not params.block and square is not None:
        return _clip(product, targets, params, square, methods)
    if square is None:
        square = np.zeros((product.groups, 0, 0))  # rounding to nearest ignores it
    unit = scale * params.stride
    if params.block and methods.rounding is Rounding.GPTQ:  # steps differ along the inputs
        return params, gptq(targets, square, low, high, unit).astype(CARRIER[params.type])
    codes = ROUNDERS[methods.rounding](targets / unit + zero_point, square, low, high)
    return params, (codes * params.stride).astype(CARRIER[params.type])


def _clip(
    product: MatrixProduct, targets: Reals, params: Params, square: Reals, methods: Refining
) -> tuple[Params, Array]:
    """Return parameters with the best scales, and codes [G, O, K]; all scales are tried at once, as more channels."""
    groups, channels, inputs = targets.shape
    many = np.tile(targets, (1, len(CLIPS), 1))
    units = np.tile(np.broadcast_to(_along(product, params)[0], (groups, channels, 1)), (1, len(CLIPS), 1))
    units = units * np.repeat(CLIPS, channels)[:, None]
    codes = ROUNDERS[methods.rounding](many / units, square, *params.limits)
    errors = output_error(codes * units - many, damp(square)).reshape(groups, len(CLIPS), channels)
    if params.scale.size == 1:  # of all channels
        errors = np.broadcast_to(errors.sum(axis=(0, 2), keepdims=True), errors.shape)
    best = errors.argmin(axis=1)  # [G, O]
    chosen = np.take_along_axis(codes.reshape(groups, len(CLIPS), channels, inputs), best[:, None, :, None], 1)[:, 0]
    scale = params.scale * CLIPS[best].reshape(-1)[: params.scale.size]
    return replace(params, scale=scale.astype(np.float32)), chosen.astype(CARRIER[params.type])


def _values(product: MatrixProduct, codes: Array, params: Params) -> Reals:
    """Return the values of codes [G, O, K]."""
    scale, zero_point = _along(product, params)
    return (codes - zero_point) * scale


def _along(product: MatrixProduct, params: Params) -> tuple[Reals, Reals]:
    """Return scale and zero point by group and output channel, [G, O, 1]; block scales also by input, [G, O, K]."""
    if params.block:
        wide = np.repeat(params.scale.astype(np.float64), params.block).reshape(1, product.shape[0], -1)
        return wide, np.zeros((1, 1, 1))
    channels = product.shape[3] if product.depthwise else product.shape[0]
    scale, zero_point = (
        np.broadcast_to(v.astype(np.float64), channels).reshape(product.groups, -1, 1)
        for v in (params.scale, params.zero_point)
    )
    return scale, zero_point
