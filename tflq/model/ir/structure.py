"""Check that a model's indices are valid and its shapes are possible, on which every reader relies."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tflq.errors import LimitError, ModelError
from tflq.model.ir.model import Model, Operator, Subgraph, TensorSpec

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
