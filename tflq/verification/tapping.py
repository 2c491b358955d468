"""Models made of a model: one whose every tensor is an output, and one that is a single operator of it.

Asking a runtime to preserve its tensors changes what it does (which delegate it applies, what it computes in place).
A tensor that is an output of the graph has to be right in every runtime, so that is how tensors are read here.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import Model, Operator, Subgraph, TensorType

#: Types whose values no runtime hands out.
_OPAQUE = (TensorType.RESOURCE, TensorType.VARIANT)


def made_tensors(graph: Subgraph) -> tuple[int, ...]:
    """Indices of the tensors that the graph's operators make, in order of execution, each once."""
    made = (tensor for operator in graph.operators for tensor in operator.outputs if tensor >= 0)
    return tuple(dict.fromkeys(made))


def all_outputs(model: Model) -> tuple[Model, tuple[int, ...]]:
    """`model` with every tensor of its first subgraph that an operator makes or updates as an output; handles are none.

    Also returns the tensor index of each output. Signatures, which name the outputs there were, are left out.
    """
    graph = model.subgraphs[0]
    inputs = set(graph.inputs)
    variables = [i for i, t in enumerate(graph.tensors) if t.is_variable]
    made = (t for t in (*made_tensors(graph), *variables) if t not in inputs and graph.tensors[t].type not in _OPAQUE)
    tensors = tuple(dict.fromkeys(made))
    tapped = replace(graph, outputs=tensors)
    return replace(model, subgraphs=(tapped, *model.subgraphs[1:]), signature_defs=None), tensors


def single_operator(model: Model, index: int) -> tuple[Model, tuple[int, ...]]:
    """Operator `index` of the first subgraph as a model of its own, and the original index of each of its tensors.

    Its graph inputs are the operator's inputs that neither the file nor a variable holds, each once.
    """
    graph = model.subgraphs[0]
    operator = graph.operators[index]
    used = (*operator.inputs, *operator.outputs, *(operator.intermediates or ()))
    tensors = tuple(dict.fromkeys(t for t in used if t >= 0))
    number = {tensor: position for position, tensor in enumerate(tensors)}
    free = [t for t in dict.fromkeys(operator.inputs) if t >= 0 and _is_computed(model, graph, t)]
    alone = Subgraph(
        tensors=tuple(graph.tensors[t] for t in tensors),
        inputs=tuple(number[t] for t in free),
        outputs=tuple(number[t] for t in operator.outputs if t >= 0),
        operators=(_renumbered(operator, number),),
        name=graph.name,
    )
    return replace(model, subgraphs=(alone, *model.subgraphs[1:]), signature_defs=None), tensors


def _renumbered(operator: Operator, number: dict[int, int]) -> Operator:
    def of(tensors: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number.get(t, -1) for t in tensors)

    intermediates = None if operator.intermediates is None else of(operator.intermediates)
    return replace(
        operator, inputs=of(operator.inputs), outputs=of(operator.outputs), intermediates=intermediates,
        debug_metadata_index=-1,
    )  # fmt: skip


def _is_computed(model: Model, graph: Subgraph, tensor: int) -> bool:
    spec = graph.tensors[tensor]
    if spec.is_variable:
        return False
    if tensor in graph.inputs:
        return True
    buffer = model.buffers[spec.buffer] if 0 <= spec.buffer < len(model.buffers) else None
    return buffer is None or buffer.data is None
