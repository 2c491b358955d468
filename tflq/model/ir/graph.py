"""A subgraph with its indices resolved: operators by name, tensors, and which operators write and read each tensor.

Models are immutable, so a view never goes stale. A changed model is a new value and needs a view of its own. A view is
cheap to make: its maps are built on first use and kept. The maps hold indices, not operators, so that no reference
cycle keeps a model alive. Tensors go by the indices of the file, because the values of a run do.

Check that a model's indices are valid and its shapes are possible, on which every reader relies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.errors import LimitError, ModelError
from tflq.model.ir.constants import constant_of, stored, zero_point_of
from tflq.model.ir.model import Model, Operator, OperatorCode, Record, Subgraph, TensorSpec
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OperatorView:
    """Operator `index` of a graph. `record` is the file's."""

    graph: GraphView
    index: int
    record: Operator

    @property
    def code(self) -> OperatorCode:
        """The operator's code. Raises ModelError if the model has none of that index."""
        codes, index = self.graph.model.operator_codes, self.record.opcode_index
        if not 0 <= index < len(codes):
            raise ModelError("operator code out of range", index=self.index, got=index)
        return codes[index]

    @property
    def name(self) -> str:
        """The operator's name; for a custom operator, its own name."""
        code = self.code
        return code.custom_code or code.name if code.name == "CUSTOM" else code.name

    @property
    def builtin(self) -> str:
        """The schema's name of the operator: "CUSTOM" for every custom operator."""
        return self.code.name

    @property
    def version(self) -> int:
        """The version of the operator that the model asks for."""
        return self.code.version

    @property
    def options(self) -> Record | None:
        """The operator's options, from the field that holds them: `options`, else `options_2`."""
        return self.record.options or self.record.options_2

    @property
    def inputs(self) -> tuple[int, ...]:
        """The tensor indices of the inputs, -1 for an absent one."""
        return self.record.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """The tensor indices of the outputs, -1 for an absent one."""
        return self.record.outputs

    @property
    def writes(self) -> tuple[int, ...]:
        """The indices of the tensors that it writes, each once: outputs, and variables that it may update."""
        tensors = self.graph.tensors
        variables = (t for t in self.inputs if t >= 0 and tensors[t].is_variable)
        return tuple(dict.fromkeys((*(t for t in self.outputs if t >= 0), *variables)))

    @property
    def input_specs(self) -> tuple[TensorSpec | None, ...]:
        """The input tensors, None for an absent one."""
        return tuple(self.graph.operand(t) for t in self.inputs)

    @property
    def output_specs(self) -> tuple[TensorSpec | None, ...]:
        """The output tensors, None for an absent one."""
        return tuple(self.graph.operand(t) for t in self.outputs)

    def output(self, position: int = 0) -> TensorSpec:
        """Return the output tensor at a position. Raises ModelError if the operator has none there."""
        if position >= len(self.outputs):
            raise ModelError("operator lacks an output", index=self.index, got=len(self.outputs))
        return self.graph.tensor(self.outputs[position])


@dataclass(frozen=True, eq=False)
class GraphView:
    """A subgraph of a model. `record` is the file's."""

    model: Model
    record: Subgraph

    @property
    def inputs(self) -> tuple[int, ...]:
        """The tensor indices of the graph's inputs."""
        return self.record.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """The tensor indices of the graph's outputs."""
        return self.record.outputs

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """All tensors, by index."""
        return self.record.tensors

    @property
    def ops(self) -> tuple[OperatorView, ...]:
        """All operators, in execution order."""
        return tuple(OperatorView(self, i, record) for i, record in enumerate(self.record.operators))

    def op(self, index: int) -> OperatorView:
        """Return an operator. Raises ModelError if there is none of that index."""
        if not 0 <= index < len(self.record.operators):
            raise ModelError("operator index out of range", expected=f"below {len(self.record.operators)}", got=index)
        return OperatorView(self, index, self.record.operators[index])

    def tensor(self, index: int) -> TensorSpec:
        """Return a tensor. Raises ModelError if there is none of that index."""
        if not 0 <= index < len(self.tensors):
            raise ModelError("tensor index out of range", expected=f"below {len(self.tensors)}", got=index)
        return self.tensors[index]

    def operand(self, index: int) -> TensorSpec | None:
        """Return a tensor, or None for -1, the index of an absent operand."""
        return None if index == -1 else self.tensor(index)

    def data(self, tensor: int) -> NDArray[np.uint8] | None:
        """Return the bytes that the file stores for a tensor; None if it is no constant."""
        return stored(self.model, self.tensor(tensor))

    def zero_point(self, tensor: int) -> int:
        """Return the first zero point of a tensor, 0 if it has none."""
        return zero_point_of(self.tensor(tensor))

    def constant(self, tensor: int) -> Array | None:
        """Return the value that the file stores for a tensor; None if it stores none or the operand is absent."""
        spec = self.operand(tensor)
        return None if spec is None else constant_of(self.model, spec)

    def constants(self) -> Iterator[tuple[int, Array]]:
        """Yield the tensors whose value is fixed by the file, with the value: neither graph inputs nor variables."""
        for tensor, spec in enumerate(self.tensors):
            if tensor not in self.inputs and not spec.is_variable:
                value = constant_of(self.model, spec)
                if value is not None:
                    yield tensor, value

    @cached_property
    def computed(self) -> tuple[int, ...]:
        """The indices of the tensors that operators output, in execution order, each once."""
        return tuple(dict.fromkeys(t for operator in self.record.operators for t in operator.outputs if t >= 0))

    @cached_property
    def last_writers(self) -> Mapping[int, int]:
        """The index of the last operator that writes each tensor or may update it, by tensor."""
        return {tensor: op.index for op in self.ops for tensor in op.writes}

    @cached_property
    def _makers(self) -> Mapping[int, int]:
        return {t: index for index, record in enumerate(self.record.operators) for t in record.outputs if t >= 0}

    @cached_property
    def _readers(self) -> Mapping[int, Sequence[int]]:
        readers: dict[int, list[int]] = {}
        for index, record in enumerate(self.record.operators):
            for tensor in dict.fromkeys(t for t in record.inputs if t >= 0):
                readers.setdefault(tensor, []).append(index)
        return readers

    def uses(self) -> Counter[int]:
        """Count the operands of operators that each tensor is, in a new counter."""
        return Counter(t for record in self.record.operators for t in record.inputs if t >= 0)

    def maker(self, tensor: int) -> OperatorView | None:
        """Return the operator that outputs a tensor, the last one if there are several; None if there is none."""
        index = self._makers.get(tensor)
        return None if index is None else self.op(index)

    def readers(self, tensor: int) -> tuple[OperatorView, ...]:
        """Return the operators that read a tensor, in execution order."""
        return tuple(self.op(index) for index in self._readers.get(tensor, ()))


def view(model: Model, subgraph: int = 0) -> GraphView:
    """Return the view of a subgraph. Raises ModelError if the model has none of that index."""
    if not 0 <= subgraph < len(model.subgraphs):
        raise ModelError("no such subgraph", expected=f"below {len(model.subgraphs)}", got=subgraph)
    return GraphView(model, model.subgraphs[subgraph])


def with_graph(model: Model, graph: Subgraph, subgraph: int = 0) -> Model:
    """Return the model with another graph in place of a subgraph."""
    graphs = (*model.subgraphs[:subgraph], graph, *model.subgraphs[subgraph + 1 :])
    return replace(model, subgraphs=graphs)


#: Maximum dimensions of NumPy's arrays, and bytes that they can address.
MOST_DIMENSIONS, MOST_BYTES = 64, (1 << 63) - 1
_WIDEST = 16  # bytes of an element
_INT32 = -(1 << 31), (1 << 31) - 1


def check_structure(model: Model) -> None:
    """Refuse a model with an index of a tensor, buffer, operator code or subgraph that it does not have.

    Raises:
        ModelError: An index is out of range, a dimension is negative, or there is no subgraph.
        LimitError: A shape that no array can have.
    """
    if not model.subgraphs:
        raise ModelError("the model has no subgraph")
    for number, graph in enumerate(model.subgraphs):
        check_graph(model, graph, f"subgraph {number}: " if number else "")
    for signature in model.signature_defs or ():
        _check_index(signature.subgraph_index, len(model.subgraphs), "signature: subgraph index")
        tensors = len(model.subgraphs[signature.subgraph_index].tensors)
        for _, tensor in (*signature.inputs, *signature.outputs):
            _check_index(tensor, tensors, "signature: tensor index")


def check_graph(model: Model, graph: Subgraph, place: str = "") -> None:
    """Refuse a subgraph of the model as in `check_structure`; errors begin with `place`."""
    for tensor in graph.tensors:
        _check_tensor(model, tensor, place)
    for index in (*graph.inputs, *graph.outputs):
        _check_index(index, len(graph.tensors), f"{place}tensor index of a graph input or output")
    for position, operator in enumerate(graph.operators):
        if not 0 <= operator.opcode_index < len(model.operator_codes):
            raise ModelError(
                f"{place}operator code index out of range",
                index=position,
                expected=f"below {len(model.operator_codes)}",
                got=operator.opcode_index,
            )
        for index in _operands(operator):
            if not -1 <= index < len(graph.tensors):
                raise ModelError(
                    f"{place}tensor index out of range",
                    index=position,
                    expected=f"below {len(graph.tensors)}",
                    got=index,
                )


def _operands(operator: Operator) -> Iterable[int]:
    """Return tensor indices; -1 means an absent one."""
    return (*operator.inputs, *operator.outputs, *(operator.intermediates or ()))


def _check_tensor(model: Model, tensor: TensorSpec, place: str) -> None:
    name, shape = tensor.name or "", list(tensor.shape)
    if not 0 <= tensor.buffer < len(model.buffers):
        raise ModelError(f"{place}buffer index out of range", tensor=name, got=tensor.buffer)
    if tensor.external_buffer:
        remedy = "open it from the .litertlm package that holds its weights"
        raise ModelError(f"{place}the data lies outside the file: {remedy}", tensor=name)
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{place}a dimension is negative", tensor=name, got=shape)
    if len(shape) > MOST_DIMENSIONS:
        raise LimitError(f"{place}a tensor has {len(shape)} dimensions, more than the limit of {MOST_DIMENSIONS}")
    if math.prod(max(extent, 1) for extent in shape) * _WIDEST > MOST_BYTES:
        raise LimitError(f"{place}no array can have the shape {shape}")
    _check_quantization(tensor, place)


def _check_quantization(tensor: TensorSpec, place: str) -> None:
    """Refuse inconsistent quantization; tensors without scales are not quantized.

    Source: LiteRT 2.3 interpreter_builder.cc ParseQuantization.
    """
    quantization = tensor.quantization
    if quantization is None or not len(quantization.scale):
        return
    name, scales, zero_points = tensor.name or "", len(quantization.scale), len(quantization.zero_point)
    if zero_points != scales:
        raise ModelError(f"{place}numbers of scales and zero points", tensor=name, expected=scales, got=zero_points)
    low, high = int(quantization.zero_point.min()), int(quantization.zero_point.max())
    if low < _INT32[0] or high > _INT32[1]:
        beyond = low if low < _INT32[0] else high
        raise ModelError(f"{place}zero point", tensor=name, expected="an int32, as runtimes keep it", got=beyond)


def _check_index(index: int, count: int, what: str) -> None:
    if not 0 <= index < count:
        raise ModelError(f"{what} out of range", expected=f"below {count}", got=index)
