"""Scales, zero points and codes of all tensors that a scheme makes integer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.code_limits import code_limits
from tflq.errors import InputError
from tflq.model.ir import TensorType
from tflq.quantization.build.blocks import in_blocks
from tflq.quantization.params import Params, Range, asymmetric, extent, hull, symmetric
from tflq.quantization.ranges.biases import bias_params, data_params, mode_of
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.recipe.ranging import RangeRule
from tflq.quantization.recipe.recipe import TYPES, Mode, Recipe
from tflq.quantization.scheme import cells, svdf
from tflq.quantization.scheme.operands import Multiplied, own_type
from tflq.quantization.scheme.scheme import Form, Scheme, Slot
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """The replacement of a constant that an operand reads: codes with parameters, or float16 values without.

    `widened` constants are read as float32 through DEQUANTIZE.
    """

    codes: Array
    params: Params | None
    widened: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Everything that a rewritten model adds to the float model. Tensors that are not named stay unchanged.

    `results` are parameters of tensors as operators or callers produce them, `read` as operands read them. If the two
    differ, QUANTIZE or DEQUANTIZE is inserted. `outputs` are the graph's outputs as callers get them.
    """

    scheme: Scheme
    results: Mapping[int, Params]
    read: Mapping[Slot, Params]
    outputs: Mapping[int, Params]
    constants: Mapping[Slot, Constant]
    intermediates: Mapping[int, tuple[Params, ...]] = field(default_factory=dict)  # of cells, by operator
    notes: Mapping[int, str] = field(default_factory=dict)  # by operator: changes that make values fit


def activation_params(
    scheme: Scheme, ranges: Mapping[int, Range], rule: RangeRule = RangeRule.NUDGE
) -> dict[Form, Params]:
    """Return the parameters of every group, by tensor index: fixed by an operator, else from its members' ranges.

    Ranges that the file prescribes take precedence over observed ones, and are not laid out by `rule`.
    """
    activations = {
        group: _group_params(scheme, group, ranges, rule) for group in scheme.members if group not in scheme.states
    }
    for group, index in scheme.states.items():
        features = scheme.model.constants[scheme.model.graph.op(index).inputs[svdf.FEATURES]]
        activations[group] = svdf.state_params(activations[scheme.read[index, svdf.X]], features)
    return activations


def _group_params(scheme: Scheme, group: Form, ranges: Mapping[int, Range], rule: RangeRule) -> Params:
    if group in scheme.fixed:
        return Params.of(group[1], *scheme.fixed[group])
    prescribed = scheme.model.ranges
    members = [t for t in scheme.members[group] if t in prescribed]
    if members and group not in scheme.centred:
        return asymmetric(hull(prescribed[t] for t in members), group[1])
    observed = [ranges[t] for t in scheme.members[group] if t in ranges]
    observed += [extent(scheme.model.constants[t]) for t in scheme.members[group] if t in scheme.model.constants]
    if not observed:
        name = scheme.model.graph.tensors[group[0]].name or f"#{group[0]}"
        raise InputError("no calibration sample reached it", name=name)
    span = hull(observed)
    return symmetric(span, group[1]) if group in scheme.centred else Quantizer(rule, group[1]).params(span)


def weight_params(scheme: Scheme, ranges: Mapping[Slot, Range]) -> dict[Slot, Params]:
    """Return the parameters of all weights for their ranges; parameters that the file prescribes take precedence."""
    return {
        slot: _weight_params(scheme, m, ranges[slot]) for m in scheme.multiplied for slot in [(m.operator, m.position)]
    }


def _weight_params(scheme: Scheme, weights: Multiplied, observed: Range) -> Params:
    model, kind = scheme.model, TYPES[mode_of(scheme, weights)].weights
    stored = model.params.get(weights.tensor)
    if stored is not None and (stored.type, kind) == (TensorType.UINT8, TensorType.INT8):
        stored = retype(stored, kind)  # zero point 128 becomes 0
    if stored is not None and stored.type == kind and (kind == TensorType.UINT8 or not stored.zero_point.any()):
        fits = stored.scale.size == 1 or stored.axis == weights.axis
        if fits:
            return stored
    span = model.ranges.get(weights.tensor, observed)
    if kind == TensorType.UINT8:
        return asymmetric(span, kind)
    if mode_of(scheme, weights) is Mode.DYNAMICX4:
        return in_blocks(model.constants[weights.tensor])
    return symmetric(span, kind, weights.axis or 0)


def assign(
    scheme: Scheme,
    activations: Mapping[Form, Params],
    weights: Mapping[Slot, Params],
    recipe: Recipe,
    codes: Mapping[Slot, Array] | None = None,
    biases: Mapping[Slot, NDArray[np.float32]] | None = None,
) -> Assignment:
    """Return codes for constants, and the types of the graph's inputs and outputs.

    If `codes` of weights are given, they replace rounding to nearest; `biases` replace the model's own. Every bias fits
    its type under `weights`: `fitted_weights` ensures that.
    """
    constants = {
        slot: _activation(scheme, slot, None if group is None else activations[group])
        for slot, group in scheme.constants.items()
    }
    constants.update({slot: _stored(scheme, slot, axis, recipe) for slot, axis in scheme.stored.items()})
    for m in scheme.multiplied:
        slot = (m.operator, m.position)
        refined = None if codes is None else codes.get(slot)
        constants.update(_weights(scheme, m, activations, weights[slot], recipe, refined, biases or {}))
    graph = scheme.model.graph
    results: dict[int, Params | None] = {t: activations[group] for t, group in scheme.results.items()}
    outputs = {t: retype(results[t], recipe.output_type) for t in graph.outputs if t in results}
    results.update({t: retype(results[t], recipe.input_type) for t in graph.inputs if t in results})
    for t, group in scheme.edges.items():
        if t in graph.outputs and recipe.output_type is not None:
            outputs[t] = retype(activations[group], recipe.output_type)
        if t in graph.inputs and recipe.input_type is not None:
            results[t] = retype(activations[group], recipe.input_type)
    for group, index in scheme.states.items():
        bias, time = graph.op(index).inputs[svdf.BIAS], constants[index, svdf.TIME].params
        if bias in scheme.model.constants and time is not None:
            unit = bias_params(time, activations[group], TensorType.INT32)
            constants[index, svdf.BIAS] = Constant(unit.encode(scheme.model.constants[bias]), unit)
    inside: dict[int, tuple[Params, ...]] = {}
    for index in scheme.cells:
        operator = scheme.model.graph.op(index)
        hidden = cells.hidden_params(operator.inputs, activations[scheme.results[operator.outputs[0]]])
        inside[index] = cells.intermediates(hidden)
        constants.update(_cell_biases(scheme, index, constants, activations[scheme.read[index, 0]], hidden))
    return Assignment(
        scheme=scheme,
        results={t: params for t, params in results.items() if params is not None},
        read={slot: activations[group] for slot, group in scheme.read.items()},
        outputs={t: params for t, params in outputs.items() if params is not None},
        constants=constants,
        intermediates=inside,
    )


def _cell_biases(
    scheme: Scheme, index: int, constants: Mapping[Slot, Constant], data: Params, hidden: Params
) -> dict[Slot, Constant]:
    """Return the biases of an LSTM, each in the unit of the sums to which it is added."""
    inputs, biases = scheme.model.graph.op(index).inputs, {}
    for position, weights in cells.BIASES.items():
        if inputs[position] in scheme.model.constants:
            scaled = constants[index, weights].params
            assert scaled is not None  # matrices are stored in 8 bits
            unit = bias_params(scaled, hidden if weights == cells.PROJECTION else data, TensorType.INT32)
            biases[index, position] = Constant(unit.encode(scheme.model.constants[inputs[position]]), unit)
    return biases


def retype(params: Params | None, type_: TensorType | None) -> Params | None:
    """Return parameters in another type: with the same steps for 8 bits, the same span for others; None for float32."""
    if params is None or type_ is None or params.type == type_:
        return params
    if type_ == TensorType.FLOAT32:
        return None
    low, high = code_limits(params.type)
    if code_limits(type_)[1] - code_limits(type_)[0] == high - low:
        shift = code_limits(type_)[0] - low
        return replace(params, type=type_, zero_point=params.zero_point + shift)
    ends = params.scale.astype(np.float64) * (np.array([low, high]) - params.zero_point)
    return asymmetric(Range.of(ends[0], ends[1]), type_)


def _activation(scheme: Scheme, slot: Slot, shared: Params | None) -> Constant:
    """Return a constant that is read as an activation."""
    operator, position = slot
    tensor = scheme.model.graph.op(operator).inputs[position]
    values = scheme.model.constants[tensor]
    return Constant((params := shared or _own_params(scheme, operator, position, tensor)).encode(values), params)


def _own_params(scheme: Scheme, operator: int, position: int, tensor: int) -> Params:
    """Return the parameters of a constant, computed from its own values unless the file prescribes them."""
    mode, model = scheme.modes[operator], scheme.model
    op = model.graph.op(operator).name
    kind = None if mode is None else own_type(op, position, mode)
    assert kind is not None  # only integer operators read constants as activations
    stored = model.params.get(tensor)
    if stored is not None and stored.type == kind and stored.scale.size == 1:
        return stored
    own = model.ranges.get(tensor) or extent(model.constants[tensor])
    narrowed = mode is not None and kind != TYPES[mode].data
    inside = op in cells.CELLS or op == "SVDF"
    return symmetric(own, kind) if inside or narrowed else asymmetric(own, kind)


def _stored(scheme: Scheme, slot: Slot, axis: int | None, recipe: Recipe) -> Constant:
    """Return weights with parameters that span their values, or float16 weights."""
    operator, position = slot
    values = scheme.model.constants[scheme.model.graph.op(operator).inputs[position]]
    widened = scheme.modes[operator] == Mode.WEIGHTS
    if widened and recipe.weights_type == TensorType.FLOAT16:
        return Constant(values.astype(np.float16), None, widened)
    params = symmetric(extent(values, axis), TensorType.INT8, axis or 0)
    return Constant(params.encode(values), params, widened)


def _weights(
    scheme: Scheme,
    m: Multiplied,
    activations: Mapping[Form, Params],
    params: Params,
    recipe: Recipe,
    codes: Array | None,
    biases: Mapping[Slot, NDArray[np.float32]],
) -> dict[Slot, Constant]:
    """Return an operator's weights and bias."""
    slot, bias_slot, mode = (m.operator, m.position), (m.operator, m.bias_position), mode_of(scheme, m)
    values, widened = scheme.model.constants[m.tensor], mode == Mode.WEIGHTS
    if widened and recipe.weights_type == TensorType.FLOAT16:
        return {slot: Constant(values.astype(np.float16), None, widened=True)}
    constants = {slot: Constant(params.encode(values) if codes is None else codes, params, widened)}
    if m.bias is not None:
        bias = biases.get(bias_slot, scheme.model.constants[m.bias]).reshape(-1)  # some have the shape (1, 1, 1, N)
        unit = bias_params(params, data_params(scheme, m, activations), TYPES[mode].bias or TensorType.INT32)
        constants[bias_slot] = Constant(unit.encode(bias), unit)
    return constants
