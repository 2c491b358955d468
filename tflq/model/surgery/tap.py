"""Models derived from a model: with every tensor as an output, of one subgraph or all signatures; a single operator.

Asking a runtime to preserve its tensors changes what it does (which delegate it applies, what it computes in place). An
output of the graph must be right in every runtime, so tensors are read as outputs here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tflq.model.ir import GraphView, Model, Root, Subgraph, view, with_graph
from tflq.model.ir.signatures import call, roots, signature_of
from tflq.model.surgery.cut import OPAQUE, cut


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
