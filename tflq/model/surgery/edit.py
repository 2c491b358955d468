"""A single operator's model with one change: a tensor's description, a constant, or an option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.model.ir import Buffer, Model, Operator, TensorSpec, view, with_graph
from tflq.typing import Array


def with_tensor(model: Model, tensor: int, spec: TensorSpec) -> Model:
    """Return the model with another description of a tensor in the first subgraph."""
    return with_tensors(model, {tensor: spec})


def with_tensors(model: Model, specs: Mapping[int, TensorSpec]) -> Model:
    """Return the model with other descriptions of some tensors of the first subgraph."""
    graph = view(model)
    tensors = tuple(specs.get(index, spec) for index, spec in enumerate(graph.tensors))
    return with_graph(model, replace(graph.record, tensors=tensors))


def with_constant(model: Model, tensor: int, value: Array) -> Model:
    """Return the model with another value of a constant, of the same type, in a buffer of its own."""
    data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    spec = replace(
        view(model).tensors[tensor], shape=value.shape, buffer=len(model.buffers), shape_signature=None, sparsity=None
    )
    return with_tensor(replace(model, buffers=(*model.buffers, Buffer(data))), tensor, spec)


def with_operator(model: Model, operator: Operator) -> Model:
    """Return the model with another operator in place of the only one."""
    return with_graph(model, replace(view(model).record, operators=(operator,)))


def with_option(model: Model, name: str, value: Any) -> Model:
    """Return the model with another value of one option."""
    operator = view(model).op(0).record
    assert operator.options is not None
    options = replace(operator.options, fields={**operator.options.fields, name: value})
    return with_operator(model, replace(operator, options=options))
