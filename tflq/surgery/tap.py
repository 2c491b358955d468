"""Models derived from a model: one with every tensor as an output, and one with a single operator.

Asking a runtime to preserve its tensors changes what it does (which delegate it applies, what it computes in place). An
output of the graph must be right in every runtime, so tensors are read as outputs here.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import Model, view, with_graph
from tflq.surgery.cut import OPAQUE, cut


def all_outputs(model: Model) -> tuple[Model, tuple[int, ...]]:
    """Return `model` with every tensor that an operator makes or updates as an output, except handles.

    Only the first subgraph changes. The tensor index of each output is also returned. Signatures, which name the old
    outputs, are dropped.
    """
    graph = view(model)
    inputs = set(graph.inputs)
    variables = [i for i, t in enumerate(graph.tensors) if t.is_variable]
    visible = (t for t in (*graph.computed, *variables) if t not in inputs and graph.tensors[t].type not in OPAQUE)
    tensors = tuple(dict.fromkeys(visible))
    tapped = replace(graph.record, outputs=tensors)
    return replace(with_graph(model, tapped), signature_defs=None), tensors


def single_operator(model: Model, index: int) -> tuple[Model, tuple[int, ...]]:
    """Return operator `index` of the first subgraph as a model of its own, and its tensors' original indices.

    Its graph inputs are the operator's inputs except constants and variables, each once.
    """
    return cut(model, (index,))
