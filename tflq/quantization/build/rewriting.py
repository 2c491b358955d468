"""Rewrite a float model and an assignment into the integer model.

A conversion is inserted if the form in which a tensor is produced differs from the form in which it is read. All
readers of the same form share one conversion, so none undoes another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.facts.rules import READS_SHAPES
from tflq.engine.kernels.facts.versions import (
    MUL_BY_ONE_OR_MORE,
    dequantize_version,
    need,
    quantize_version,
    structure_version,
)
from tflq.model.ir import Operator, OperatorCode, OperatorView, Quantization, Record, TensorSpec, TensorType
from tflq.model.ir.schema import enum
from tflq.quantization.build.assignment import Assignment, Constant
from tflq.quantization.draft import Draft, four_bits
from tflq.quantization.integer_model import IntegerModel
from tflq.quantization.params import Params, Range, asymmetric
from tflq.quantization.recipe.recipe import TYPES, Mode
from tflq.quantization.scheme.float_graph import FloatModel, stored_params
from tflq.quantization.scheme.scheme import Slot

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
        self._draft = Draft(self._model)
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
        fields = {"scales": self._draft.tensor(spec), "zero_points": -1, "block_size": params.block}
        details = Record("BlockwiseQuantization", MappingProxyType(fields))
        return replace(params.quantization, details=details)

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
