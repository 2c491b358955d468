"""Write codes in place of weights, for all subgraphs at once; buffers that nothing reads are dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.facts.versions import need, structure_version
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Quantization, Record, Subgraph, TensorSpec, TensorType
from tflq.quantization.draft import four_bits
from tflq.quantization.params import Params
from tflq.quantization.weights.forms import Coded
from tflq.quantization.weights.places import Weight
from tflq.typing import Array


def with_codes(model: Model, chosen: Mapping[int, tuple[Weight, Coded]], *, dynamic: bool) -> Model:
    """Return the model with these weights as codes, by buffer.

    Args:
        model: The float model.
        chosen: For each buffer its weights, and their codes and scales.
        dynamic: Let reference kernels quantize activations asymmetrically, as XNNPACK does.
    """
    writing = _Writing(model, dynamic)
    for weight, codes in chosen.values():
        writing.write(weight, codes)
    return compact(writing.model())


class _Writing:
    """The tables of a model under change."""

    def __init__(self, model: Model, dynamic: bool) -> None:
        self._model, self._dynamic = model, dynamic
        self._buffers = list(model.buffers)
        self._codes = list(model.operator_codes)
        self._tensors = [list(graph.tensors) for graph in model.subgraphs]
        self._operators = [list(graph.operators) for graph in model.subgraphs]

    def model(self) -> Model:
        """Return the model."""
        graphs = tuple(
            replace(graph, tensors=tuple(tensors), operators=tuple(operators))
            for graph, tensors, operators in zip(self._model.subgraphs, self._tensors, self._operators, strict=True)
        )
        return replace(self._model, subgraphs=graphs, buffers=tuple(self._buffers), operator_codes=tuple(self._codes))

    def write(self, weight: Weight, coded: Coded) -> None:
        """Write one weight's codes, and its scales into every subgraph that reads it."""
        params = coded.params
        codes = weight.from_rows(coded.codes)
        buffer = self._buffer(four_bits(codes) if params.type == TensorType.INT4 else codes)
        scales = self._buffer(params.scale.astype(np.float16)) if params.block else 0
        for use in weight.uses:
            tensors = self._tensors[use.subgraph]
            old = tensors[use.tensor]
            if old.type == TensorType.FLOAT32:
                form = params.quantization
                if params.block:
                    form = self._blocks(use.subgraph, old, params, scales, form)
                tensors[use.tensor] = replace(old, type=params.type, quantization=form, buffer=buffer, sparsity=None)
            self._write_operator(use.subgraph, use.operator)

    def _blocks(self, subgraph: int, old: TensorSpec, params: Params, buffer: int, form: Quantization) -> Quantization:
        """Return the quantization that names a new tensor of scales in the subgraph."""
        tensors = self._tensors[subgraph]
        shape = (*old.shape[:-1], old.shape[-1] // params.block)
        tensors.append(TensorSpec(f"{old.name or 'weights'}_scales", TensorType.FLOAT16, shape, buffer))
        fields = {"scales": len(tensors) - 1, "zero_points": -1, "block_size": params.block}
        return replace(form, details=Record("BlockwiseQuantization", MappingProxyType(fields)))

    def _write_operator(self, subgraph: int, index: int) -> None:
        operator = self._operators[subgraph][index]
        tensors = self._tensors[subgraph]
        code = self._codes[operator.opcode_index]
        specs = [tensors[t] if t >= 0 else None for t in operator.inputs]
        types = [None if s is None else TensorType(s.type) for s in specs]
        scales = [s.quantization.scale.size for s in specs[1:] if s is not None and s.quantization is not None]
        version = need(code.name, types, per_channel=any(size > 1 for size in scales))
        version = max(code.version, version, structure_version(code.name, operator.options, len(operator.inputs)))
        self._operators[subgraph][index] = replace(
            operator, opcode_index=self._code(replace(code, version=version)), options=self._options(operator)
        )

    def _options(self, operator: Operator) -> Record | None:
        options = operator.options
        if options is None or "asymmetric_quantize_inputs" not in options.fields:
            return options
        fields = {**options.fields, "asymmetric_quantize_inputs": self._dynamic}
        return replace(options, fields=MappingProxyType(fields))

    def _code(self, code: OperatorCode) -> int:
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def _buffer(self, values: Array) -> int:
        self._buffers.append(Buffer(np.ascontiguousarray(values).reshape(-1).view(np.uint8)))
        return len(self._buffers) - 1


def compact(model: Model) -> Model:
    """Return the model with equal buffers stored once; buffers and operator codes that nothing uses are dropped."""
    kept: list[Buffer] = [Buffer()]
    places: dict[bytes, int] = {}
    numbers: dict[int, int] = {}

    def placed(number: int) -> int:
        if number not in numbers:
            data = model.buffers[number].data if number else None
            if data is None or not data.size:
                numbers[number] = 0 if data is None else appended(model.buffers[number])
            else:
                key = sha256(np.ascontiguousarray(data).data).digest()
                if key not in places:
                    places[key] = appended(replace(model.buffers[number], external=False))
                numbers[number] = places[key]
        return numbers[number]

    def appended(buffer: Buffer) -> int:
        kept.append(buffer)
        return len(kept) - 1

    used = sorted({operator.opcode_index for graph in model.subgraphs for operator in graph.operators})
    codes = {old: new for new, old in enumerate(used)}
    graphs = tuple(_renumber(graph, codes, placed) for graph in model.subgraphs)
    entries = [(name, b) for name, b in model.metadata or () if name != "min_runtime_version"]
    metadata = tuple((name, placed(buffer)) for name, buffer in entries) or None
    return replace(
        model,
        operator_codes=tuple(model.operator_codes[old] for old in used),
        subgraphs=graphs,
        buffers=tuple(kept),
        metadata=metadata,
        metadata_buffer=None,
    )


def _renumber(graph: Subgraph, codes: Mapping[int, int], placed: Callable[[int], int]) -> Subgraph:
    tensors = tuple(replace(tensor, buffer=placed(tensor.buffer)) for tensor in graph.tensors)
    operators = tuple(replace(operator, opcode_index=codes[operator.opcode_index]) for operator in graph.operators)
    return replace(graph, tensors=tensors, operators=operators)
