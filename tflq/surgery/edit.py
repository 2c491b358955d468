"""A single operator's model with one change: a tensor's description, a constant, or an option."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.ir import Buffer, Model, Operator, TensorSpec

Array = NDArray[Any]


def with_tensor(model: Model, tensor: int, spec: TensorSpec) -> Model:
    """Return the model with another description of a tensor in the first subgraph."""
    graph = model.subgraphs[0]
    tensors = (*graph.tensors[:tensor], spec, *graph.tensors[tensor + 1 :])
    return replace(model, subgraphs=(replace(graph, tensors=tensors), *model.subgraphs[1:]))


def with_constant(model: Model, tensor: int, value: Array) -> Model:
    """Return the model with another value of a constant, of the same type, in a buffer of its own."""
    data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    spec = replace(
        model.subgraphs[0].tensors[tensor],
        shape=value.shape,
        buffer=len(model.buffers),
        shape_signature=None,
        sparsity=None,
    )
    return with_tensor(replace(model, buffers=(*model.buffers, Buffer(data))), tensor, spec)


def with_operator(model: Model, operator: Operator) -> Model:
    """Return the model with another operator in place of the only one."""
    graph = replace(model.subgraphs[0], operators=(operator,))
    return replace(model, subgraphs=(graph, *model.subgraphs[1:]))


def with_option(model: Model, name: str, value: Any) -> Model:
    """Return the model with another value of one option."""
    operator = model.subgraphs[0].operators[0]
    assert operator.options is not None
    options = replace(operator.options, fields={**operator.options.fields, name: value})
    return with_operator(model, replace(operator, options=options))
