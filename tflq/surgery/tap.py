"""Models made of a model: one whose every tensor is an output, and one that is a single operator of it.

Asking a runtime to preserve its tensors changes what it does (which delegate it applies, what it computes in place).
A tensor that is an output of the graph has to be right in every runtime, so that is how tensors are read here.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import Model, Subgraph
from tflq.surgery.cut import OPAQUE, cut


def made_tensors(graph: Subgraph) -> tuple[int, ...]:
    """Return indices of the tensors that the graph's operators make, in order of execution, each once."""
    outputs = (tensor for operator in graph.operators for tensor in operator.outputs if tensor >= 0)
    return tuple(dict.fromkeys(outputs))


def all_outputs(model: Model) -> tuple[Model, tuple[int, ...]]:
    """`model` with every tensor of its first subgraph that an operator makes or updates as an output; handles are none.

    Also returns the tensor index of each output. Signatures, which name the outputs there were, are left out.
    """
    graph = model.subgraphs[0]
    inputs = set(graph.inputs)
    variables = [i for i, t in enumerate(graph.tensors) if t.is_variable]
    visible = (t for t in (*made_tensors(graph), *variables) if t not in inputs and graph.tensors[t].type not in OPAQUE)
    tensors = tuple(dict.fromkeys(visible))
    tapped = replace(graph, outputs=tensors)
    return replace(model, subgraphs=(tapped, *model.subgraphs[1:]), signature_defs=None), tensors


def single_operator(model: Model, index: int) -> tuple[Model, tuple[int, ...]]:
    """Operator `index` of the first subgraph as a model of its own, and the original index of each of its tensors.

    Its graph inputs are the operator's inputs that neither the file nor a variable holds, each once.
    """
    return cut(model, (index,))
