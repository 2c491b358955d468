"""Results of a graph's operators: names, tensors, and the last of several operators that write a tensor."""

from __future__ import annotations

from tflq.ir import Model, Operator


def operator_name(model: Model, index: int) -> str:
    """Return the name of an operator of the first subgraph; a custom one's own."""
    code = model.operator_codes[model.subgraphs[0].operators[index].opcode_index]
    return code.custom_code or code.name if code.name == "CUSTOM" else code.name


def results_of(model: Model, operator: Operator) -> tuple[int, ...]:
    """Return tensors that an operator writes: its outputs, and variables that it may update."""
    tensors = model.subgraphs[0].tensors
    variables = (t for t in operator.inputs if t >= 0 and tensors[t].is_variable)
    return tuple(dict.fromkeys((*(t for t in operator.outputs if t >= 0), *variables)))


def last_makers(model: Model) -> dict[int, int]:
    """Return, by tensor index, the last operator that writes it; for a variable, the last that reads or updates it."""
    makers: dict[int, int] = {}
    for index, operator in enumerate(model.subgraphs[0].operators):
        for tensor in results_of(model, operator):
            makers[tensor] = index
    return makers
