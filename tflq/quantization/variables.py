"""Variables of a streaming model's step, and their first values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import ModelError
from tflq.model.ir import Buffer, GraphView, Model, Operator, OperatorView, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.signatures import call, reach
from tflq.quantization.scheme.float_graph import stored_params
from tflq.typing import Array

#: A variable: container and name.
Key = tuple[str, str]
HANDLE, READ, ASSIGN, INIT = "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the step: the tensors that are read from it and assigned to it."""

    key: Key
    read: int
    assigned: int


def straighten(step: Model) -> tuple[Model, tuple[int, ...]]:
    """Return the step with each variable read once and then assigned once, and its operators' indices before.

    What is read after an assignment is the assigned value; what is read twice is the same.
    """
    graph = view(step)
    handles = {op.outputs[0]: _key(op) for op in graph.ops if op.builtin == HANDLE}
    latest, same, last = dict[Key, int](), dict[int, int](), dict[Key, tuple[int, Operator]]()
    kept = list[tuple[int, Operator]]()
    for op in graph.ops:
        given = tuple(same.get(t, t) for t in op.inputs)
        key = handles.get(given[0]) if op.builtin in (READ, ASSIGN) else None
        if key is None:
            kept.append((op.index, replace(op.record, inputs=given)))
        elif op.builtin == ASSIGN:
            latest[key], last[key] = given[1], (op.index, replace(op.record, inputs=given))
        elif key in latest:
            same[op.outputs[0]] = latest[key]
        else:
            latest[key] = op.outputs[0]
            kept.append((op.index, op.record))
    kept += last.values()
    outputs = tuple(same.get(t, t) for t in graph.outputs)
    operators = tuple(operator for _, operator in kept)
    made = replace(graph.record, outputs=outputs, operators=operators)
    return replace(step, subgraphs=(made, *step.subgraphs[1:])), tuple(index for index, _ in kept)


def variables_of(graph: GraphView) -> tuple[Variable, ...]:
    """Return the variables of a straightened step, in the order of their assignment; see `stream_of` for errors."""
    handles, reads, found = dict[int, Key](), dict[Key, int](), dict[Key, Variable]()
    constants = dict(graph.constants())
    for op in graph.ops:
        if op.builtin == HANDLE:
            handles[op.outputs[0]] = _key(op)
            continue
        if op.builtin not in (READ, ASSIGN):
            continue
        key = handles.get(op.inputs[0])
        if key is None or (op.builtin == ASSIGN and key not in reads):
            name = "" if key is None else f" {key[1]!r}"
            raise ModelError(f"a stream's variable{name} is not read by the step", op=op.builtin, index=op.index)
        if op.builtin == READ:
            reads[key] = op.outputs[0]
        elif op.inputs[1] in constants or graph.tensors[op.inputs[1]].type != TensorType.FLOAT32:
            raise ModelError(f"variable {key[1]!r} takes no float that the step computes", op=ASSIGN, index=op.index)
        else:
            found[key] = Variable(key, reads[key], op.inputs[1])
    if left := [key[1] for key in reads if key not in found]:
        raise ModelError(f"a stream's variable {left[0]!r} is read and never assigned")
    return tuple(found.values())


def refuse_inner(step: Model) -> None:
    """Refuse subgraphs that the step runs and that use variables, except for first values."""
    run = [k for op in step.subgraphs[0].operators if _name(step, op) != INIT for k in call(op)]
    for index in reach(step, set(run)):
        if any(_name(step, op) in (READ, ASSIGN) for op in step.subgraphs[index].operators):
            raise ModelError(f"subgraph {index} uses variables inside control flow, which no stream does")


def with_first_values(step: Model, index: int, states: Mapping[Key, TensorSpec], buffers: list[Buffer]) -> Subgraph:
    """Return a subgraph that assigns first values in their integer form; constants alone.

    Raises:
        ModelError: A value is computed.
    """
    graph = view(step, index)
    constants, tensors = dict(graph.constants()), list(graph.tensors)
    handles = {op.outputs[0]: _key(op) for op in graph.ops if op.builtin == HANDLE}
    operators = []
    for op in graph.ops:
        spec = states.get(handles.get(op.inputs[0], ("", ""))) if op.builtin == ASSIGN else None
        record = op.record
        if spec is not None:
            params = stored_params(spec.type, spec.quantization)
            value = constants.get(op.inputs[1])
            if value is None or params is None:
                raise ModelError(f"subgraph {index}: a variable's first value is computed", op=ASSIGN, index=op.index)
            codes: Array = np.ascontiguousarray(params.encode(value))
            buffers.append(Buffer(codes.reshape(-1).view(np.uint8)))
            old, place = tensors[op.inputs[1]], op.inputs[1]
            if graph.uses()[place] > 1 or place in graph.outputs:  # by another than this one
                tensors.append(old)
                place = len(tensors) - 1
            tensors[place] = replace(
                spec, name=old.name, shape=old.shape, buffer=len(buffers) - 1, shape_signature=None
            )
            record = replace(record, inputs=(op.inputs[0], place))
        operators.append(record)
    return replace(graph.record, tensors=tuple(tensors), operators=tuple(operators))


def _key(operator: OperatorView) -> Key:
    options = operator.options
    names = ("", "") if options is None else (options.get("container"), options.get("shared_name"))
    return str(names[0] or ""), str(names[1] or "")


def _name(model: Model, operator: Operator) -> str:
    return model.operator_codes[operator.opcode_index].name
