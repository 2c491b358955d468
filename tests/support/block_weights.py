"""FULLY_CONNECTED with weights of four bits and scales of blocks, as a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from support import graphs as g
from support.single_op import T
from tflq.model.flatbuf import read, write
from tflq.model.ir import Quantization, Record


def block_model(
    rng: np.random.Generator,
    rows: int,
    length: int,
    units: int,
    block: int,
    *,
    bias: bool = True,
    scale: float = 1,
    counts: tuple[int, int] | None = None,
    type_: str = "int4",
) -> bytes:
    """One FULLY_CONNECTED of x (rows, length) with narrow weights, their scales log-uniform below `scale`."""
    codes = {"int8": 128, "int4": 8, "int2": 2}[type_]
    counts = counts or (units, length // block)
    factors = (scale * 2.0 ** rng.uniform(-9, 0, counts)).astype(np.float16)
    tensors = [
        T("float16", counts, value=factors),
        T(type_, (units, length), value=rng.integers(-codes, codes, (units, length)).astype(np.int8)),
        T("float32", (rows, length)),
        T("float32", (units,), value=rng.standard_normal(units).astype(np.float32)),
        T("float32", (rows, units)),
    ]
    options = ("FullyConnectedOptions", {"fused_activation_function": int(rng.integers(0, 4))})
    op = g.Op("FULLY_CONNECTED", (2, 1, 3 if bias else -1), (4,), options, 13)
    whole = read(g.build(g.Graph(tensors, (2,), (4,), [op])))
    graph = whole.subgraphs[0]
    details = Record("BlockwiseQuantization", {"scales": 0, "zero_points": -1, "block_size": block})
    blocks = Quantization(np.zeros(0, np.float32), np.zeros(0, np.int64), 0, details=details)
    specs = (graph.tensors[0], replace(graph.tensors[1], quantization=blocks), *graph.tensors[2:])
    return write(replace(whole, subgraphs=(replace(graph, tensors=specs),)))
