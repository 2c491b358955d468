"""Changes to a model that keep its file well-formed: one wrong type, shape, index, option, scale or reference."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Quantization, Record, Subgraph, TensorSpec, TensorType
from tflq.model.ir.model import enum

Change = Callable[[Model, random.Random], Model]

EXTENTS = (-1, 0, 1, 2, 3, 7, 64, 1 << 12, 1 << 16, 1 << 20, (1 << 31) - 1)
NUMBERS = (-(1 << 31), -7, -1, 0, 1, 2, 3, 5, 100, 1 << 16, (1 << 31) - 1)
SCALES = (0.0, -1.0, 1e-38, 1e38, float("inf"), float("nan"), 0.5)
TYPES = (*TensorType, 77)
_BUILTIN = enum("BuiltinOperator")


def changed(model: Model, seed: int) -> Model:
    """Return the model after the change with that seed."""
    chance = random.Random(seed)
    return chance.choice(CHANGES)(model, chance)


def changed_often(model: Model, seed: int) -> Model:
    """Return the model after one to three changes."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 2, 3))):
        model = chance.choice(CHANGES)(model, chance)
    return model


# --- tensors ---------------------------------------------------------------------------------------------------------


def _tensor(model: Model, chance: random.Random) -> Model:
    place = chance.randrange(len(model.subgraphs))
    tensors = model.subgraphs[place].tensors
    if not tensors:
        return model
    index = chance.randrange(len(tensors))
    change = chance.choice((_shape, _shape, _type, _buffer_of, _quantization, _quantization, _variable))
    return _with_graph(model, place, tensors=_put(tensors, index, change(tensors[index], model, chance)))


def _shape(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    shape = list(tensor.shape)
    if not shape or chance.random() < 0.2:
        shape.insert(chance.randint(0, len(shape)), chance.choice(EXTENTS))
    elif chance.random() < 0.2:
        shape.pop(chance.randrange(len(shape)))
    else:
        shape[chance.randrange(len(shape))] = chance.choice(EXTENTS)
    return replace(tensor, shape=tuple(shape))


def _type(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    return replace(tensor, type=chance.choice(TYPES))


def _buffer_of(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    return replace(tensor, buffer=chance.randrange(len(model.buffers) + 1))


def _variable(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    return replace(tensor, is_variable=not tensor.is_variable)


def _quantization(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    count = chance.choice((0, 1, 1, 1, 2, 16, *tensor.shape[:1]))
    count = count if 0 <= count < 1000 else 1
    scale = np.array([chance.choice(SCALES) for _ in range(count)], np.float32)
    zero_point = np.array([chance.choice(NUMBERS) for _ in range(chance.choice((count, count, 0, 1)))], np.int64)
    return replace(tensor, quantization=Quantization(scale, zero_point, chance.choice((0, 0, 3, -1, 9))))


# --- operators -------------------------------------------------------------------------------------------------------


def _operator(model: Model, chance: random.Random) -> Model:
    place = chance.randrange(len(model.subgraphs))
    graph = model.subgraphs[place]
    if not graph.operators:
        return model
    index = chance.randrange(len(graph.operators))
    change = chance.choice((_inputs, _outputs, _options, _options, _options, _no_options, _intermediates))
    operator = change(graph.operators[index], len(graph.tensors), chance)
    return _with_graph(model, place, operators=_put(graph.operators, index, operator))


def _inputs(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, inputs=_indices(operator.inputs, tensors, chance))


def _outputs(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, outputs=_indices(operator.outputs, tensors, chance))


def _intermediates(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, intermediates=_indices(operator.intermediates or (), tensors, chance))


def _no_options(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, options=None, options_2=None)


def _options(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    """Return the operator with some bytes of its custom options overwritten."""
    if operator.custom_options is not None and len(operator.custom_options):
        data = bytearray(operator.custom_options)
        for _ in range(chance.choice((1, 2, 8))):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        return replace(operator, custom_options=bytes(data))
    for union in ("options", "options_2"):
        record = getattr(operator, union)
        if record is not None and record.fields:
            name = chance.choice(sorted(record.fields))
            fields = {**record.fields, name: _other_value(record.fields[name], chance)}
            return replace(operator, **{union: Record(record.table, fields)})
    return operator


def _other_value(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice((*NUMBERS, value + 1, value - 1))
    if isinstance(value, float):
        return chance.choice(SCALES)
    if isinstance(value, np.ndarray):
        return np.array([chance.choice(NUMBERS) for _ in range(chance.randrange(6))]).astype(value.dtype)
    return value


def _code(model: Model, chance: random.Random) -> Model:
    """Return the model with another version of an operator, or another operator."""
    index = chance.randrange(len(model.operator_codes))
    code = model.operator_codes[index]
    name = chance.choice(sorted(_BUILTIN))
    other = chance.choice(
        (
            replace(code, version=chance.randrange(12)),
            replace(code, builtin_code=_BUILTIN["CUSTOM"], name="CUSTOM", custom_code="Mine"),
            OperatorCode(_BUILTIN[name], name, code.version, "" if name == "CUSTOM" else None),
        )
    )
    return replace(model, operator_codes=_put(model.operator_codes, index, other))


def _twice(model: Model, chance: random.Random) -> Model:
    """Return the model with one operator duplicated or removed."""
    place = chance.randrange(len(model.subgraphs))
    operators = list(model.subgraphs[place].operators)
    if operators:
        index = chance.randrange(len(operators))
        if chance.random() < 0.5:
            operators.insert(index, operators[index])
        else:
            operators.pop(index)
    return _with_graph(model, place, operators=tuple(operators))


# --- containers ------------------------------------------------------------------------------------------------------


def _buffer(model: Model, chance: random.Random) -> Model:
    index = chance.randrange(len(model.buffers))
    data = model.buffers[index].data
    if data is None or data.size == 0:
        return model
    other = data.copy()
    if chance.random() < 0.5 and len(other) >= 4:  # an integer, like indices, axes and shapes
        at = 4 * chance.randrange(len(other) // 4)
        other[at : at + 4] = np.frombuffer(np.int32(chance.choice(NUMBERS)).tobytes(), np.uint8)
    else:
        other[chance.randrange(len(other))] = chance.randrange(256)
    if chance.random() < 0.2:
        other = other[: chance.randrange(len(other))]
    return replace(model, buffers=_put(model.buffers, index, Buffer(other)))


def _ends(model: Model, chance: random.Random) -> Model:
    place = chance.randrange(len(model.subgraphs))
    graph = model.subgraphs[place]
    end = chance.choice(("inputs", "outputs"))
    return _with_graph(model, place, **{end: _indices(getattr(graph, end), len(graph.tensors), chance)})


def _reference(model: Model, chance: random.Random) -> Model:
    """Return the model with an operator that calls another subgraph."""
    callers = [
        (place, index, operator, union, field)
        for place, graph in enumerate(model.subgraphs)
        for index, operator in enumerate(graph.operators)
        for union in ("options", "options_2")
        if getattr(operator, union) is not None
        for field in getattr(operator, union).fields
        if "subgraph_ind" in field
    ]
    if not callers:
        return model
    place, index, operator, union, field = chance.choice(callers)
    record = getattr(operator, union)
    target = chance.randrange(-1, len(model.subgraphs) + 1)
    value = target if isinstance(record.fields[field], int) else np.array([target, 0], np.int32)
    other = replace(operator, **{union: Record(record.table, {**record.fields, field: value})})
    return _with_graph(model, place, operators=_put(model.subgraphs[place].operators, index, other))


def called(model: Model, chance: random.Random) -> Model:
    """Return a model whose new first subgraph calls the old one by an IF, WHILE, composite or CASE."""
    inner = model.subgraphs[0]
    if not all(0 <= tensor < len(inner.tensors) for tensor in (*inner.inputs, *inner.outputs)):
        return model  # another change has removed its tensors
    outer_inputs = tuple(range(len(inner.inputs)))
    outer_outputs = tuple(range(len(inner.inputs), len(inner.inputs) + len(inner.outputs)))
    tensors = [replace(inner.tensors[t], buffer=0, name=f"x{i}") for i, t in enumerate((*inner.inputs, *inner.outputs))]
    last = len(model.subgraphs)  # the new place of the first subgraph
    name, record, selector, second = chance.choice(_CALLS)(last)
    inputs = outer_inputs
    if selector is not None:
        tensors.append(selector)
        inputs = (len(tensors) - 1, *outer_inputs)
    operator = Operator(
        len(model.operator_codes),
        inputs,
        outer_outputs,
        options=None if second else record,
        options_2=record if second else None,
    )
    outer = Subgraph(tuple(tensors), inputs, outer_outputs, (operator,), "outer")
    truth = TensorSpec("truth", TensorType.BOOL, (1,), buffer=len(model.buffers))
    condition = Subgraph((*inner.tensors, truth), inner.inputs, (len(inner.tensors),), (), "condition")
    return replace(
        model,
        operator_codes=(*model.operator_codes, OperatorCode(_BUILTIN[name], name)),
        subgraphs=(outer, *model.subgraphs[1:], inner, condition),
        buffers=(*model.buffers, Buffer(np.array([chance.random() < 0.5], np.uint8))),
    )


_BOOL = TensorSpec("flag", TensorType.BOOL, (1,))
_BRANCH = TensorSpec("branch", TensorType.INT32, ())
#: By the number of the called subgraph: operator, options, first operand, and whether these are of the second union.
_CALLS: tuple[Callable[[int], tuple[str, Record, TensorSpec | None, bool]], ...] = (
    lambda g: ("IF", Record("IfOptions", {"then_subgraph_index": g, "else_subgraph_index": g}), _BOOL, False),
    lambda g: ("WHILE", Record("WhileOptions", {"cond_subgraph_index": g + 1, "body_subgraph_index": g}), None, False),
    lambda g: (
        "STABLEHLO_COMPOSITE",
        Record("StableHLOCompositeOptions", {"name": "mine", "decomposition_subgraph_index": g}),
        None,
        True,
    ),
    lambda g: (
        "STABLEHLO_CASE",
        Record("StablehloCaseOptions", {"branch_subgraph_indices": np.array([g, g], np.int32)}),
        _BRANCH,
        True,
    ),
)


def _indices(indices: tuple[int, ...], tensors: int, chance: random.Random) -> tuple[int, ...]:
    other = list(indices)
    if other and chance.random() < 0.3:
        other.pop(chance.randrange(len(other)))
    elif other and chance.random() < 0.7:
        other[chance.randrange(len(other))] = chance.randrange(-2, tensors + 1)
    else:
        other.append(chance.randrange(-1, max(tensors, 1)))
    return tuple(other)


def _put(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _with_graph(model: Model, place: int, **fields: Any) -> Model:
    return replace(model, subgraphs=_put(model.subgraphs, place, replace(model.subgraphs[place], **fields)))


CHANGES: tuple[Change, ...] = (
    *(_tensor,) * 6,
    *(_operator,) * 5,
    *(_buffer,) * 3,
    _code,
    _twice,
    _ends,
    _reference,
    called,
)
