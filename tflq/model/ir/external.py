"""External buffers: constants that a model's file leaves to another file, such as a section of a package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.errors import FormatError
from tflq.model.ir.model import Buffer, Model, Record, Subgraph, TensorSpec


def with_external_buffers(model: Model, data: bytes | memoryview) -> Model:
    """Return the model with its external buffers as buffers of its own, views of `data`.

    Raises:
        FormatError: A tensor names a buffer that the model does not list, or that reaches beyond `data`; or buffers are
            packed, or belong to several groups, each with data of its own.
    """
    known = {record["id"]: record for record in model.external_buffers or ()}
    used = {tensor.external_buffer for graph in model.subgraphs for tensor in graph.tensors if tensor.external_buffer}
    groups = {known[number]["group"] for number in used if number in known}
    if len(groups) > 1:
        raise FormatError(f"external buffers of {len(groups)} groups, of which one is here", table="ExternalBuffer")
    places = {number: len(model.buffers) + k for k, number in enumerate(sorted(used))}
    added = tuple(_buffer(known, number, memoryview(data)) for number in places)
    graphs = tuple(_attach(graph, places) for graph in model.subgraphs)
    return replace(
        model, subgraphs=graphs, buffers=(*model.buffers, *added), external_buffers=None, external_buffer_groups=None
    )


def _buffer(known: Mapping[int, Record], number: int, data: memoryview) -> Buffer:
    record = known.get(number)
    if record is None:
        raise FormatError(f"a tensor names external buffer {number}, which the model does not list", table="Tensor")
    if record["packing"]:
        raise FormatError(f"external buffer {number} is packed as {record['packing']!r}", table="ExternalBuffer")
    begin, size = record["offset"], record["length"]
    if begin + size > len(data):
        reason = f"external buffer {number} has bytes {begin} to {begin + size} of {len(data)}"
        raise FormatError(reason, table="ExternalBuffer")
    return Buffer(np.frombuffer(data[begin : begin + size], np.uint8))


def _attach(graph: Subgraph, places: Mapping[int, int]) -> Subgraph:
    def attach(tensor: TensorSpec) -> TensorSpec:
        if not tensor.external_buffer:
            return tensor
        return replace(tensor, buffer=places[tensor.external_buffer], external_buffer=0)

    return replace(graph, tensors=tuple(attach(tensor) for tensor in graph.tensors))
