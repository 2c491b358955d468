"""The prepared float graph, also of an integer model.

The prepared float graph: constants are float32, and prescribed ranges are stored next to it.

Constants behind QUANTIZE, DEQUANTIZE or DENSIFY become plain constants. Integer weights of hybrid operators become
float32 with their parameters kept. FAKE_QUANT is removed and its range kept; the same goes for its form in TensorFlow's
converter, QUANTIZE to uint8 and DEQUANTIZE. Computed tensors between DEQUANTIZE or QUANTIZE and float operators keep
the parameters of the other side. Only the first subgraph is read; tensors keep their indices.

The float function of an integer model: its constants as the numbers that their codes represent.

Every tensor's scale and zero point are prescribed, so constants get the same codes again. Such a model differs from the
integer model only by the rounding of activations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from tflq.engine.interpreter import make_plan, run
from tflq.engine.kernels.checks import code_limits
from tflq.engine.profiles import by_name
from tflq.errors import ModelError
from tflq.model.ir import (
    Buffer,
    GraphView,
    Model,
    Operator,
    OperatorView,
    Quantization,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
    with_graph,
)
from tflq.model.surgery.cut import cut
from tflq.quantization.params import Params, Range, real
from tflq.quantization.recipe import Mode
from tflq.typing import Array

#: Types of constants that DEQUANTIZE widens, or that hybrid operators take as weights.
NARROW = (TensorType.INT8, TensorType.UINT8)
#: Types of tensors with a single scale.
SCALED = (*NARROW, TensorType.INT16)


@dataclass(frozen=True, slots=True, eq=False)
class FloatModel:
    """A prepared model, and the file's prescriptions by tensor index.

    `origins` are the operators' indices in the original model. `params` belong to float tensors that have, or had, an
    integer form; `ranges` are those of FAKE_QUANT. `codes` are the integer tensors that DEQUANTIZE widens to computed
    float tensors.
    """

    model: Model
    origins: tuple[int, ...]
    params: Mapping[int, Params]
    ranges: Mapping[int, Range]
    codes: Mapping[int, int]
    constants: Mapping[int, Array]  # every constant tensor, read-only

    @property
    def graph(self) -> GraphView:
        """The view of its first subgraph."""
        return view(self.model)

    @property
    def trained(self) -> frozenset[int]:
        """Constants whose codes or ranges are prescribed, as by training that rounds them."""
        return frozenset({*self.params, *self.ranges}.intersection(self.constants))

    def is_float(self, tensor: int) -> bool:
        """Return whether a tensor holds float32; False for an absent one."""
        return tensor >= 0 and self.graph.tensors[tensor].type == TensorType.FLOAT32


def prepare(model: Model) -> FloatModel:
    """Return the model, prepared for observation and rewriting."""
    folding = _Folding(model)
    for op in view(model).ops:
        folding.take(op)
    return folding.result()


def with_constants(model: FloatModel, values: Mapping[int, Array]) -> FloatModel:
    """Return the model with other values in some of its float constants."""
    tensors, buffers = list(model.graph.tensors), list(model.model.buffers)
    for tensor, array in values.items():
        buffers.append(Buffer(np.ascontiguousarray(array, np.float32).reshape(-1).view(np.uint8)))
        tensors[tensor] = replace(tensors[tensor], buffer=len(buffers) - 1)
    graph = replace(model.graph.record, tensors=tuple(tensors))
    changed = replace(with_graph(model.model, graph), buffers=tuple(buffers))
    return replace(model, model=changed, constants={**model.constants, **values})


class _Folding:
    """A model while its operators are copied, one by one."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._graph = view(model)
        self._tensors = list(self._graph.tensors)
        self._kept: list[tuple[int, Operator]] = []
        self._params: dict[int, Params] = {}
        self._ranges: dict[int, Range] = {}
        self._codes: dict[int, int] = {}
        self._instead: dict[int, int] = {}  # a tensor that is read -> its replacement
        self._dissolved: set[int] = set()  # outputs of DEQUANTIZE, of removed pairs
        self._new: dict[int, Array] = {}  # new constants
        self._constants = dict(self._graph.constants())

    def take(self, operator: OperatorView) -> None:
        """Take the next operator: keep it, or dissolve it into constants and ranges."""
        name = operator.builtin
        inputs = tuple(self._instead.get(t, t) for t in operator.inputs)
        if name == "DENSIFY" and inputs[0] in self._constants:
            self._new_constant(operator.outputs[0], self._constants[inputs[0]])
            return
        if name == "QUANTIZE" and inputs[0] in self._constants:  # as training tools export weights
            self._new_constant(operator.outputs[0], self._encode(operator.index, inputs[0]))
            return
        if name == "DEQUANTIZE" and self._widen(inputs[0], operator.outputs[0]):
            return
        if name == "FAKE_QUANT" and self._take_range(operator, inputs[0]):
            return
        if name == "QUANTIZE" and (pair := self._pair(operator)) is not None:
            span, result = pair
            if self._stands_for(span, inputs[0], result):
                self._dissolved.add(result)
                return
        if name == "DEQUANTIZE" and operator.outputs[0] in self._dissolved:
            return
        self._kept.append((operator.index, replace(operator.record, inputs=inputs)))
        if name in ("QUANTIZE", "DEQUANTIZE"):
            self._keep_params(name, inputs[0], operator.outputs[0])
        if any(t >= 0 and self._type(t) == TensorType.FLOAT32 for t in operator.outputs):
            for tensor in _hybrid_weights(name, inputs, self._tensors):
                self._widen(tensor, tensor)

    def result(self) -> FloatModel:
        """Return the model without the dissolved operators."""
        buffers = list(self._model.buffers)
        for tensor, values in self._new.items():
            buffers.append(Buffer(np.ascontiguousarray(values).reshape(-1).view(np.uint8)))
            spec = self._float_spec(tensor) if values.dtype == np.float32 else self._tensors[tensor]
            self._tensors[tensor] = replace(spec, shape=values.shape, buffer=len(buffers) - 1, sparsity=None)
        graph = replace(
            self._graph.record, tensors=tuple(self._tensors), operators=tuple(operator for _, operator in self._kept)
        )
        model = replace(with_graph(self._model, graph), buffers=tuple(buffers))
        return FloatModel(
            model=model,
            origins=tuple(index for index, _ in self._kept),
            params=MappingProxyType(self._params),
            ranges=MappingProxyType(self._ranges),
            codes=MappingProxyType(self._codes),
            constants=MappingProxyType(self._constants),
        )

    def _keep_params(self, name: str, source: int, result: int) -> None:
        """Let the float side of a conversion have the integer side's parameters, if there is only one scale."""
        wide, narrow = (source, result) if name == "QUANTIZE" else (result, source)
        spec = self._tensors[narrow]
        params = stored_params(spec.type, spec.quantization)
        if self._type(wide) != TensorType.FLOAT32 or params is None or params.scale.size != 1:
            return
        self._params.setdefault(wide, params)
        if name == "DEQUANTIZE":
            self._codes[result] = source

    def _type(self, tensor: int) -> TensorType | int:
        return self._tensors[tensor].type

    def _float_spec(self, tensor: int) -> TensorSpec:
        return replace(self._tensors[tensor], type=TensorType.FLOAT32, quantization=None)

    def _widen(self, tensor: int, result: int) -> bool:
        """Make `result` a float32 constant with the values of the narrow constant `tensor`."""
        spec, codes = self._tensors[tensor], self._constants.get(tensor)
        if codes is None:
            return False
        if spec.type == TensorType.FLOAT16:
            self._new_constant(result, codes.astype(np.float32))
            return True
        params = None if spec.type not in NARROW else stored_params(spec.type, spec.quantization)
        if params is None:
            return False
        self._new_constant(result, params.decode(codes))
        self._params[result] = params
        if result == tensor:
            self._tensors[tensor] = self._float_spec(tensor)
        return True

    def _encode(self, index: int, source: int) -> Array:
        """Return the exact codes that the operator QUANTIZE computes from a constant."""
        part, _ = cut(self._model, [index])
        inputs = dict.fromkeys(view(part).inputs, self._constants[source])
        shapes = {i: values.shape for i, values in inputs.items()}
        trace = run(make_plan(part, by_name("litert-ref"), input_shapes=shapes), inputs)
        (result,) = view(part).outputs
        return trace.values[result]

    def _new_constant(self, tensor: int, values: Array) -> None:
        self._new[tensor] = self._constants[tensor] = values

    def _take_range(self, operator: OperatorView, source: int) -> bool:
        """Apply FAKE_QUANT's range to its input, and merge its input and output tensors."""
        options = operator.options
        if options is None or not options["min"] < options["max"]:
            return False
        return self._stands_for(Range.of(float(options["min"]), float(options["max"])), source, operator.outputs[0])

    def _pair(self, quantize: OperatorView) -> tuple[Range, int] | None:
        """Return the range of uint8 codes that only one DEQUANTIZE reads, and the result of that DEQUANTIZE."""
        codes = quantize.outputs[0]
        spec = self._tensors[codes]
        readers = self._graph.readers(codes)
        params = stored_params(spec.type, spec.quantization)
        if spec.type != TensorType.UINT8 or params is None or params.scale.size != 1:
            return None
        if (
            [reader.builtin for reader in readers] != ["DEQUANTIZE"]
            or codes in self._graph.outputs
            or self._type(quantize.inputs[0]) != TensorType.FLOAT32
        ):
            return None
        ends = float(params.scale[0]) * (np.array(code_limits(TensorType.UINT8)) - int(params.zero_point[0]))
        return Range.of(ends[0], ends[1]), readers[0].outputs[0]

    def _stands_for(self, span: Range, source: int, result: int) -> bool:
        """Merge two tensors, with a range that the file prescribes; return False if that is not possible."""
        kept, gone = (result, source) if result in self._graph.outputs else (source, result)
        if gone in self._graph.outputs or gone in self._graph.inputs or gone in self._constants:
            return False
        self._ranges[kept] = span
        self._instead[gone] = kept
        self._kept = [(index, _rename(other, gone, kept)) for index, other in self._kept]
        return True


def _rename(operator: Operator, old: int, new: int) -> Operator:
    def of(tensors: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(new if t == old else t for t in tensors)

    return replace(operator, inputs=of(operator.inputs), outputs=of(operator.outputs))


def _hybrid_weights(name: str, inputs: Iterable[int], tensors: list[TensorSpec]) -> Iterable[int]:
    """Yield integer operands that a float operator scales; none if its data are also integers, as in DEQUANTIZE."""
    present = [t for t in inputs if t >= 0]
    if name in ("DEQUANTIZE", "CAST") or not any(tensors[t].type == TensorType.FLOAT32 for t in present):
        return ()
    return [t for t in present if tensors[t].type in NARROW and stored_params(tensors[t].type, tensors[t].quantization)]


def stored_params(type_: TensorType | int, quantization: Quantization | None) -> Params | None:
    """Return the parameters as a file holds them; None if they are missing or stored elsewhere."""
    if quantization is None or type_ not in SCALED or not quantization.scale.size:
        return None
    if quantization.details is not None and quantization.details.table != "CustomQuantization":
        return None
    zero_point = quantization.zero_point if quantization.zero_point.size else np.zeros(1, np.int64)
    return Params(
        TensorType(type_),
        quantization.scale,
        np.broadcast_to(zero_point, quantization.scale.shape),
        quantization.quantized_dimension,
    )


#: Types of activations -> a model's mode.
_MODES = {TensorType.INT8: Mode.INT8, TensorType.UINT8: Mode.UINT8, TensorType.INT16: Mode.INT16X8}
_BIASES = (TensorType.INT32, TensorType.INT64)


def widen(model: Model) -> tuple[FloatModel, Mode]:
    """Return the float model that an integer model was rounded from, and its mode; lost bits of constants stay lost.

    Tensors keep their indices and names. QUANTIZE and DEQUANTIZE at its edges are removed.

    Raises:
        ModelError: It is not integer throughout, in one type; it requantizes; or its weights have other types.
    """
    graph = view(model)
    params = {t: p for t, spec in enumerate(graph.tensors) if (p := stored_params(spec.type, spec.quantization))}
    constants = dict(graph.constants())
    mode = _mode(model, {t: p for t, p in params.items() if t not in constants})
    kept, instead = _without_conversions(model, params)
    values = {t: wide for t, codes in constants.items() if (wide := _wide(graph.tensors[t], codes, params)) is not None}
    tensors, buffers = list(graph.tensors), list(model.buffers)
    for t in {*params, *values}:
        tensors[t] = replace(tensors[t], type=TensorType.FLOAT32, quantization=None)
    for t, value in values.items():
        buffers.append(Buffer(np.ascontiguousarray(value).reshape(-1).view(np.uint8)))
        tensors[t] = replace(tensors[t], buffer=len(buffers) - 1)
    wide_graph = Subgraph(
        tuple(tensors),
        tuple(instead.get(t, t) for t in graph.inputs),
        tuple(instead.get(t, t) for t in graph.outputs),
        tuple(operator for _, operator in kept),
        graph.record.name,
    )
    changed = replace(with_graph(model, wide_graph), buffers=tuple(buffers))
    prescribed = {instead.get(t, t): p for t, p in params.items()}
    return (
        FloatModel(
            model=changed,
            origins=tuple(index for index, _ in kept),
            params=MappingProxyType(prescribed),
            ranges=MappingProxyType({}),
            codes=MappingProxyType({}),
            constants=MappingProxyType({**constants, **values}),
        ),
        mode,
    )


def _mode(model: Model, activations: Mapping[int, Params]) -> Mode:
    """Return the mode that a model's activations imply."""
    graph = view(model)
    kinds = Counter(p.type for p in activations.values())
    if len(model.subgraphs) != 1:
        raise ModelError("its operators run subgraphs, whose biases are not corrected")
    if len(kinds) != 1:
        raise ModelError(
            "its activations are not all of one integer type", expected="int8", got=sorted(kind.label for kind in kinds)
        )
    for operator in graph.ops:
        index, name = operator.index, operator.builtin
        present = [t for t in (*operator.inputs, *operator.outputs) if t >= 0]
        if name not in ("QUANTIZE", "DEQUANTIZE") and any(graph.tensors[t].type == TensorType.FLOAT32 for t in present):
            raise ModelError("computes with floats: quantize without --requantize completes it", op=name, index=index)
        if operator.record.intermediates or any(graph.tensors[t].is_variable for t in present):
            raise ModelError("has a state whose scales belong to its inside", op=name, index=index)
        if any(graph.tensors[t].type == TensorType.INT4 for t in present):
            raise ModelError("has weights of four bits", op=name, index=index)
    return _MODES[next(iter(kinds))]


def _without_conversions(
    model: Model, params: Mapping[int, Params]
) -> tuple[list[tuple[int, Operator]], dict[int, int]]:
    """Return the operators that compute, with their indices, and the replacements of removed tensors."""
    graph, kept = view(model), list[tuple[int, Operator]]()
    instead: dict[int, int] = {}
    for operator in graph.ops:
        index, name = operator.index, operator.builtin
        if name in ("QUANTIZE", "DEQUANTIZE"):
            source, result = operator.inputs[0], operator.outputs[0]
            if source in params and result in params:
                raise ModelError("requantizes, so that a tensor has two scales", op=name, index=index)
            edge, inner = (source, result) if result in params else (result, source)
            if edge not in (*graph.inputs, *graph.outputs):
                raise ModelError("is not a conversion at the model's edge", op=name, index=index)
            instead[edge] = inner
        else:
            kept.append((index, operator.record))
    return kept, instead


def _wide(spec: TensorSpec, codes: Array, params: Mapping[int, Params]) -> Array | None:
    """Return the values of codes, float32; None for other contents."""
    quantized = spec.quantization is not None and spec.quantization.scale.size > 0
    known = stored_params(spec.type, spec.quantization)
    if known is not None:
        return known.decode(codes)
    return real(spec, codes).astype(np.float32) if quantized and spec.type in _BIASES else None
