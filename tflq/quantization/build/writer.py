"""Codes and scales of all tensors, and the integer model written with them.

Scales for blocks of weights with four bits.

Scales, zero points and codes of all tensors that a scheme makes integer.

Rewrite a float model and an assignment into the integer model.

A conversion is inserted if the form in which a tensor is produced differs from the form in which it is read. All
readers of the same form share one conversion, so none undoes another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tflq.engine.kernels.checks import code_limits
from tflq.engine.kernels.facts.rules import (
    MUL_BY_ONE_OR_MORE,
    READS_SHAPES,
    dequantize_version,
    need,
    quantize_version,
    structure_version,
)
from tflq.errors import InputError
from tflq.model.ir import Operator, OperatorCode, OperatorView, Quantization, Record, TensorSpec, TensorType
from tflq.model.ir.model import enum
from tflq.quantization.draft import IntegerModel, ModelDraft, four_bits
from tflq.quantization.params import (
    Params,
    Range,
    asymmetric,
    extent,
    hull,
    symmetric,
    usable_of_blocks,
    with_block_scales,
)
from tflq.quantization.ranges.objectives import Quantizer
from tflq.quantization.ranges.weights import bias_params, data_params, mode_of
from tflq.quantization.recipe import BLOCK, TYPES, Mode, RangeRule, Recipe
from tflq.quantization.scheme import operands
from tflq.quantization.scheme.float_graph import FloatModel, stored_params
from tflq.quantization.scheme.operands import Multiplied, own_type
from tflq.quantization.scheme.scheme import Form, Scheme, Slot
from tflq.typing import Array

#: Candidate ratios between the magnitude that gets the greatest code and a block's greatest magnitude.
_SHARES = np.linspace(1.0, 0.6, 17)


def in_blocks(weights: Array) -> Params:
    """Return parameters of weights (O, K) with one scale per BLOCK of them, chosen for the least squared error."""
    blocks = weights.astype(np.float64).reshape(-1, BLOCK)
    reach, greatest = np.abs(blocks).max(1), code_limits(TensorType.INT4)[1]
    scale, least = np.ones(len(blocks), np.float32), np.full(len(blocks), np.inf)
    for share in _SHARES:
        tried = usable_of_blocks(share * reach / greatest)
        wide = tried[:, None].astype(np.float64)
        errors = np.square(np.clip(np.rint(blocks / wide), -greatest, greatest) * wide - blocks).sum(1)
        scale, least = np.where(errors < least, tried, scale), np.minimum(errors, least)
    return Params(TensorType.INT4, scale, np.zeros(1, np.int64), narrow=True, block=BLOCK)


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
        features = scheme.model.constants[scheme.model.graph.op(index).inputs[operands.FEATURES]]
        activations[group] = operands.state_params(activations[scheme.read[index, operands.X]], features)
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
        bias, time = graph.op(index).inputs[operands.BIAS], constants[index, operands.TIME].params
        if bias in scheme.model.constants and time is not None:
            unit = bias_params(time, activations[group], TensorType.INT32)
            constants[index, operands.BIAS] = Constant(unit.encode(scheme.model.constants[bias]), unit)
    inside: dict[int, tuple[Params, ...]] = {}
    for index in scheme.cells:
        operator = scheme.model.graph.op(index)
        hidden = operands.hidden_params(operator.inputs, activations[scheme.results[operator.outputs[0]]])
        inside[index] = operands.intermediates(hidden)
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
    for position, weights in operands.BIASES.items():
        if inputs[position] in scheme.model.constants:
            scaled = constants[index, weights].params
            assert scaled is not None  # matrices are stored in 8 bits
            unit = bias_params(scaled, hidden if weights == operands.PROJECTION else data, TensorType.INT32)
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
    inside = op in operands.CELLS or op == "SVDF"
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


#: The integer kernel of NEG negates codes and ignores their scales; MUL by -1 computes the intended result.
NEG_AS_MUL = (
    OperatorCode(enum("BuiltinOperator")["MUL"], "MUL"),
    Record("MulOptions", MappingProxyType({"fused_activation_function": 0})),
)

#: Pairs of types that QUANTIZE does not convert directly: they are converted through float32.
NO_DIRECT_WAY = {(TensorType.INT16, TensorType.UINT8)}


def rewritten(assignment: Assignment) -> IntegerModel:
    """Return the integer model: unused constants, operator codes and tensors are dropped."""
    writing = _Writing(assignment)
    for index in range(len(assignment.scheme.modes)):
        writing.operator(index)
    return writing.result()


class _Writing:
    """The new model's first subgraph under construction."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._source: FloatModel = assignment.scheme.model
        self._model = self._source.model
        self._draft = ModelDraft(self._model)
        self._made: dict[int, int] = {}  # float model's tensor -> new tensor
        self._converted: dict[tuple[int, object], int] = {}  # (float model's tensor, form) -> new tensor
        self._constants: dict[object, int] = {}
        self._minus_ones: dict[TensorType, int] = {}
        self._stored: set[int] = set()  # constants of the float model that this draft holds in at least one form
        self._inputs = tuple(self._original(t) for t in self._source.graph.inputs)

    def operator(self, index: int) -> None:
        """Write one operator of the float model, after its conversions."""
        old = self._source.graph.op(index)
        if old.inputs and old.outputs and self._dissolved(old):
            return
        inputs = tuple(-1 if t < 0 else self._operand((index, p), t) for p, t in enumerate(old.inputs))
        outputs = tuple(map(self._original, old.outputs))
        code = old.code
        mode = self._assignment.scheme.modes[index]
        options = old.record.options if mode is None else _options(old.record.options, mode)
        data = None if mode is None else TYPES[mode].data
        if code.name == "NEG" and data is not None:
            code, options, inputs = *NEG_AS_MUL, (*inputs, self._minus_one(data))
        if mode is not None:
            code = replace(code, version=max(code.version, self._version(code.name, options, inputs, outputs)))
        intermediates = self._intermediates(index, old.record)
        new = replace(old.record, inputs=inputs, outputs=outputs, options=options, intermediates=intermediates)
        self._draft.append(new, code, index)

    def result(self) -> IntegerModel:
        """Return the model, with its outputs converted to the form that callers get."""
        outputs = tuple(self._output(t) for t in self._source.graph.outputs)
        model = self._draft.finished(self._inputs, outputs)
        return IntegerModel(model, tuple(self._draft.origins), MappingProxyType(self._made))

    def _operand(self, slot: Slot, tensor: int) -> int:
        if self._source.graph.op(slot[0]).name in READS_SHAPES:
            return self._home(tensor)[1]
        constant = self._assignment.constants.get(slot)
        if constant is not None:
            return self._constant(tensor, constant)
        form = self._assignment.read.get(slot)
        if self._source.is_float(tensor) and tensor not in self._source.constants:
            return self._in_form(tensor, form)
        return self._original(tensor)

    def _output(self, tensor: int) -> int:
        if self._source.is_float(tensor) and tensor not in self._source.constants:
            return self._in_form(tensor, self._assignment.outputs.get(tensor))
        return self._original(tensor)

    def _in_form(self, tensor: int, form: Params | None) -> int:
        """Return the new tensor that holds a computed tensor in this form."""
        own, home = self._home(tensor)
        if form == own:
            return home
        if own is not None and form is not None and (own.type, form.type) in NO_DIRECT_WAY:
            own, home = None, self._in_form(tensor, None)
        key = (tensor, None if form is None else form.key)
        if key not in self._converted:
            self._converted[key] = self._convert(tensor, home, own, form)
        return self._converted[key]

    def _home(self, tensor: int) -> tuple[Params | None, int]:
        """Return the form in which a computed tensor is produced, and its new tensor.

        For the result of a DEQUANTIZE these are the form and the tensor that it reads.
        """
        narrow = self._source.codes.get(tensor)
        if narrow is None:
            return self._assignment.results.get(tensor), self._original(tensor)
        return self._source.params[tensor], self._original(narrow)

    def _convert(self, tensor: int, home: int, own: Params | None, form: Params | None) -> int:
        spec = self._source.graph.tensors[tensor]
        kind = TensorType.FLOAT32 if own is None else own.type
        if form is None:
            name = spec.name if tensor in self._source.codes else self._draft.named(f"{spec.name or ''}_dequantized")
            result = self._draft.tensor(_in_type(spec, None, name))
            self._draft.convert("DEQUANTIZE", home, result, dequantize_version(kind, 1))
        else:
            name = self._draft.named(f"{spec.name or ''}_{form.type.label}")
            result = self._draft.tensor(_in_type(spec, form, name))
            self._draft.convert("QUANTIZE", home, result, quantize_version(kind, form.type))
        return result

    def _dissolved(self, operator: OperatorView) -> bool:
        """Return whether the float model's own conversion is dropped, or is written only where it is needed."""
        op, source, output = operator.name, operator.inputs[0], operator.outputs[0]
        if op == "DEQUANTIZE":
            return output in self._source.codes
        form, home = self._home(source) if op == "QUANTIZE" else (None, -1)
        spec = self._source.graph.tensors[output]
        if form is None or form != stored_params(spec.type, spec.quantization):
            return False
        self._made[output] = home
        return True

    def _constant(self, tensor: int, constant: Constant) -> int:
        params = constant.params
        narrow = params is not None and params.type == TensorType.INT4
        stored_codes = four_bits(constant.codes) if narrow else constant.codes
        buffer, shape = self._draft.buffer(stored_codes), constant.codes.shape
        key = (buffer, shape, None if params is None else params.key, constant.widened)
        if key not in self._constants:
            spec = self._source.graph.tensors[tensor]
            name = spec.name if tensor not in self._stored else self._draft.named(spec.name or "")
            self._stored.add(tensor)
            kind = TensorType.FLOAT16 if params is None else params.type
            form = replace(_in_type(spec, params, name), type=kind, shape=shape, buffer=buffer, sparsity=None)
            if params is not None and params.block:
                form = replace(form, quantization=self._blocks(params, constant.codes.shape, name or ""))
            stored = self._draft.tensor(form)
            if constant.widened:
                wide = self._draft.tensor(_in_type(spec, None, self._draft.named(f"{spec.name or ''}_dequantized")))
                channels = 1 if params is None else params.scale.size
                self._draft.convert("DEQUANTIZE", stored, wide, dequantize_version(kind, channels))
                stored = wide
            self._constants[key] = stored
        return self._constants[key]

    def _blocks(self, params: Params, shape: tuple[int, ...], name: str) -> Quantization:
        """Return the entry that names block scales: a float16 tensor with one row per row of the weights."""
        scales = params.scale.astype(np.float16).reshape(*shape[:-1], -1)
        spec = TensorSpec(
            self._draft.named(f"{name}_scales"), TensorType.FLOAT16, scales.shape, self._draft.buffer(scales)
        )
        return with_block_scales(params, self._draft.tensor(spec))

    def _minus_one(self, type_: TensorType) -> int:
        """Return the number -1 as a constant; one per type."""
        if type_ not in self._minus_ones:
            params = asymmetric(Range.of(-1.0, 0.0), type_)
            buffer = self._draft.buffer(params.encode(np.full((), -1.0)))
            spec = TensorSpec(self._draft.named("minus_one"), type_, (), buffer, params.quantization)
            self._minus_ones[type_] = self._draft.tensor(spec)
        return self._minus_ones[type_]

    def _original(self, tensor: int) -> int:
        """Return the new tensor for a computed, given or persistent tensor, or for an unchanged constant."""
        if tensor < 0:
            return -1
        if tensor not in self._made:
            spec = self._source.graph.tensors[tensor]
            params = self._assignment.results.get(tensor)
            spec = spec if params is None else _in_type(spec, params, spec.name)
            buffer = self._draft.copied(spec.buffer) if tensor in self._source.constants else 0
            self._made[tensor] = self._draft.tensor(replace(spec, buffer=buffer))
        return self._made[tensor]

    def _intermediates(self, index: int, operator: Operator) -> tuple[int, ...] | None:
        """Return the tensors that hold the scales of an operator's intermediate results."""
        if index not in self._assignment.intermediates:
            return None if operator.intermediates is None else tuple(map(self._original, operator.intermediates))
        name = self._source.graph.tensors[operator.outputs[0]].name
        inside = enumerate(self._assignment.intermediates[index])
        return tuple(
            self._draft.tensor(TensorSpec(f"{name}_intermediate_{i}", p.type, (), quantization=p.quantization))
            for i, p in inside
        )

    def _version(self, op: str, options: Record | None, inputs: Sequence[int], outputs: Sequence[int]) -> int:
        specs = [None if t < 0 else self._draft.tensors[t] for t in inputs]
        types = [None if s is None else TensorType(s.type) for s in specs]
        scales = [s.quantization.scale for s in specs if s is not None and s.quantization is not None]
        weights = [s.quantization for s in specs[1:] if s is not None]
        version = need(op, types, per_channel=any(q is not None and q.scale.size > 1 for q in weights))
        quantization = self._draft.tensors[outputs[0]].quantization
        if op == "MUL" and quantization is not None and len(scales) == 2:
            product = float(scales[0][0]) * float(scales[1][0]) / float(quantization.scale[0])
            version = max(version, MUL_BY_ONE_OR_MORE if product >= 1 else 1)
        return max(version, structure_version(op, options, len(inputs)))


def _in_type(spec: TensorSpec, params: Params | None, name: str | None) -> TensorSpec:
    """Return a tensor of the same shape with these parameters, or with float32 values; without a buffer."""
    if params is None:
        return replace(spec, name=name, type=TensorType.FLOAT32, quantization=None, buffer=0)
    return replace(spec, name=name, type=params.type, quantization=params.quantization, buffer=0)


def _options(options: Record | None, mode: Mode) -> Record | None:
    """Return the options, with the switches that an integer kernel reads."""
    if options is None:
        return None
    fields = dict(options.fields)
    if options.table in ("AddOptions", "SubOptions"):  # scales are not powers of two
        fields["pot_scale_int16"] = False
    if "asymmetric_quantize_inputs" in fields:
        fields["asymmetric_quantize_inputs"] = mode in (Mode.DYNAMIC, Mode.DYNAMICX4)
    return options if fields == dict(options.fields) else replace(options, fields=MappingProxyType(fields))
