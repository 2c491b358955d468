"""RESHAPEs that compute their shape from an open batch get a constant one, in which the batch is -1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.model.ir import Buffer, GraphView, Model, Operator, OperatorView, TensorType, view, with_graph
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
