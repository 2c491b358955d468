"""Models of one composite, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from support.graphs import Graph, Op
from support.graphs import build as build_graphs
from support.single_op import T


def attention(
    query: tuple[int, ...],
    key: tuple[int, ...],
    mask: tuple[int, ...] | None,
    attributes: Any,
    name: str = "odml.scaled_dot_product_attention",
) -> bytes:
    """A model of one attention, whose decomposition doubles the query."""
    inputs = [T("float32", query), T("float32", key), T("float32", key)]
    inputs += [T("float32", mask)] if mask else []
    given = list(range(len(inputs)))
    options = {
        "name": name,
        "decomposition_subgraph_index": 1,
        "composite_attributes": np.frombuffer(bytes(flexbuffers.Dumps(attributes)), np.uint8),
        "composite_attributes_format": 0,
        "version": 0,
    }
    call = Op("STABLEHLO_COMPOSITE", given, [len(inputs)], ("StableHLOCompositeOptions", options))
    copy = Op("ADD", [0, 0], [len(inputs)], ("AddOptions", {}))
    tensors = [*inputs, T("float32", query)]
    return build_graphs(Graph(tensors, given, [len(inputs)], [call]), Graph(tensors, given, [len(inputs)], [copy]))
