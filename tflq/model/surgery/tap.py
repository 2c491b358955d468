"""Models derived from a model: tapped, edited, or without open batch.

RESHAPEs that compute their shape from an open batch get a constant one, in which the batch is -1.

A single operator's model with one change: a tensor's description, a constant, or an option.

Models derived from a model: with every tensor as an output, of one subgraph or all signatures; a single operator.

Asking a runtime to preserve its tensors changes what it does (which delegate it applies, what it computes in place). An
output of the graph must be right in every runtime, so tensors are read as outputs here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.model.ir import (
    Buffer,
    GraphView,
    Model,
    Operator,
    OperatorView,
    Root,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
    with_graph,
)
from tflq.model.ir.signatures import call, roots, signature_of
from tflq.model.surgery.cut import OPAQUE, cut
from tflq.typing import Array

#: Operators that join sizes to a shape, and those without effect whose results may become unread.
_JOINS = frozenset(("PACK", "CONCATENATION"))
_PURE = frozenset((*_JOINS, "SHAPE", "STRIDED_SLICE", "SLICE", "GATHER", "SQUEEZE", "CAST", "RESHAPE", "EXPAND_DIMS"))
#: In place of the unknown size.
_OPEN = -2


def with_open_reshapes(model: Model) -> Model:
    """Return the model with a constant for each shape that is joined for RESHAPEs, if all sizes but one are known.

    A RESHAPE keeps the number of elements, so the unknown size can only be one: it becomes -1, as in constant shapes of
    converters. Operators that nothing reads any longer are dropped. A model of several subgraphs is unchanged.
    """
    graph = view(model)
    if len(model.subgraphs) != 1:
        return model
    found = {op.outputs[0]: shape for op in graph.ops if (shape := _open_shape(graph, op)) is not None}
    if not found:
        return model
    tensors, buffers = list(graph.tensors), list(model.buffers)
    for tensor, shape in found.items():
        tensors[tensor] = replace(tensors[tensor], buffer=len(buffers))
        buffers.append(Buffer(np.frombuffer(shape.tobytes(), np.uint8)))
    read, kept = set(graph.outputs), list[Operator]()
    for op in reversed(graph.ops):
        if op.name in _PURE and (op.outputs[0] in found or read.isdisjoint(op.outputs)):
            continue
        read.update(op.inputs)
        kept.append(op.record)
    record = replace(graph.record, tensors=tuple(tensors), operators=tuple(reversed(kept)))
    return with_graph(replace(model, buffers=tuple(buffers)), record)


def _open_shape(graph: GraphView, op: OperatorView) -> Array | None:
    """Return the shape that an operator joins for RESHAPEs, with -1 for its unknown size; None if it does not."""
    readers = () if op.name not in _JOINS else graph.readers(op.outputs[0])
    if not readers or op.outputs[0] in graph.outputs:
        return None
    if any(reader.name != "RESHAPE" or reader.inputs[0] == op.outputs[0] for reader in readers):
        return None
    sizes: list[int] = []
    for tensor in op.inputs:
        value = graph.constant(tensor)
        if value is None and graph.tensors[tensor].shape not in ((), (1,)):
            return None
        sizes += [_OPEN] if value is None else map(int, value.flat)
    result = graph.tensors[readers[0].outputs[0]]
    for axis, size in enumerate(sizes):  # the size that a RESHAPE infers is in the file
        if size == -1 and len(result.shape) == len(sizes) and (result.shape_signature or result.shape)[axis] > 0:
            sizes[axis] = result.shape[axis]
    if sizes.count(_OPEN) != 1 or any(size < 1 for size in sizes if size != _OPEN):
        return None
    return np.array(
        [-1 if size == _OPEN else size for size in sizes],
        np.int64 if graph.tensors[op.outputs[0]].type == TensorType.INT64 else np.int32,
    )


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


def all_outputs(model: Model) -> tuple[Model, tuple[int, ...]]:
    """Return `model` with every tensor that an operator makes or updates as an output, except handles.

    Only the first subgraph changes. The tensor index of each output is also returned. Signatures, which name the old
    outputs, are dropped.
    """
    graph = view(model)
    tensors = visible(graph)
    tapped = replace(graph.record, outputs=tensors)
    return replace(with_graph(model, tapped), signature_defs=None), tensors


def visible(graph: GraphView) -> tuple[int, ...]:
    """Return the tensors that operators of a graph make or update, except inputs and handles."""
    inputs = set(graph.inputs)
    variables = [i for i, t in enumerate(graph.tensors) if t.is_variable]
    made = (t for t in (*graph.computed, *variables) if t not in inputs and graph.tensors[t].type not in OPAQUE)
    return tuple(dict.fromkeys(made))


def tap_signatures(model: Model) -> tuple[Model, Mapping[Root, Mapping[str, int]]]:
    """Return `model` with every tensor of every signature's subgraph as an output, and their names by signature.

    Each signature keeps its key, inputs and outputs, and has more outputs: names, which are also returned with tensor
    indices. So does a first subgraph that no signature runs, with positions for names. A subgraph that operators call,
    or that several signatures run, keeps its outputs; the signature runs a copy.
    """
    graphs = list(model.subgraphs)
    shared = {k for graph in graphs for operator in graph.operators for k in call(operator)}
    signatures, names = [], {}
    for root in roots(model):
        signature = signature_of(model, root)
        if signature is None:  # the first subgraph, which runs by position
            first = view(model)
            tensors = visible(first)
            graphs[0] = replace(first.record, outputs=(*first.outputs, *tensors))
            names[root] = {str(len(first.outputs) + i): tensor for i, tensor in enumerate(tensors)}
            continue
        graph, place = view(model, root.subgraph), root.subgraph
        if place in shared:
            place = len(graphs)
            graphs.append(graph.record)
        shared.add(place)
        tensors = visible(graph)
        graphs[place] = _with_outputs(graph.record, (*graph.outputs, *tensors))
        taken = {name for name, _ in signature.outputs}
        names[root] = {_free(f"t{tensor}", taken): tensor for tensor in tensors}
        outputs = (*signature.outputs, *names[root].items())
        signatures.append(replace(signature, outputs=outputs, subgraph_index=place))
    return replace(model, subgraphs=tuple(graphs), signature_defs=tuple(signatures)), names


def _with_outputs(graph: Subgraph, outputs: tuple[int, ...]) -> Subgraph:
    return replace(graph, outputs=tuple(dict.fromkeys(outputs)))


def _free(name: str, taken: set[str]) -> str:
    """Return the name, changed if an output has it."""
    while name in taken:
        name += "_"
    return name


def single_operator(model: Model, index: int) -> tuple[Model, tuple[int, ...]]:
    """Return operator `index` of the first subgraph as a model of its own, and its tensors' original indices.

    Its graph inputs are the operator's inputs except constants and variables, each once.
    """
    return cut(model, (index,))
