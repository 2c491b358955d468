"""Models that are wrong in one place: well-formed files that no converter would write."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.model.ir import Buffer, Model, Operator, Quantization, Record, TensorSpec, TensorType

EXTENTS = (-1, 0, 1, 2, 3, 7, 64, 1 << 16, 1 << 20, (1 << 31) - 1)
NUMBERS = (-(1 << 31), -7, -1, 0, 1, 2, 3, 5, 100, 1 << 16, (1 << 31) - 1)
SCALES = (0.0, -1.0, 1e-38, 1e38, float("inf"), float("nan"), 0.5)


def mutated(model: Model, seed: int) -> Model:
    """The model with one to three random changes to its first subgraph and what belongs to that."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 2, 3))):
        model = chance.choice(CHANGES)(model, chance)
    return model


def _tensor(model: Model, chance: random.Random) -> Model:
    graph = model.subgraphs[0]
    index = chance.randrange(len(graph.tensors))
    change = chance.choice((_shape, _shape, _type, _buffer_index, _quantization, _variable))
    changed = change(graph.tensors[index], model, chance)
    return _with_graph(model, tensors=_put(graph.tensors, index, changed))


def _shape(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    shape = list(tensor.shape)
    if not shape or chance.random() < 0.2:
        shape.insert(chance.randint(0, len(shape)), chance.choice(EXTENTS))
    elif chance.random() < 0.2:
        shape.pop()
    else:
        shape[chance.randrange(len(shape))] = chance.choice(EXTENTS)
    return replace(tensor, shape=tuple(shape))


def _type(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    return replace(tensor, type=chance.choice([*TensorType, 77]))


def _buffer_index(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    return replace(tensor, buffer=chance.randrange(len(model.buffers) + 1))


def _variable(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    return replace(tensor, is_variable=not tensor.is_variable)


def _quantization(tensor: TensorSpec, model: Model, chance: random.Random) -> TensorSpec:
    count = chance.choice((0, 1, 1, 1, 2, 16))
    scale = np.array([chance.choice(SCALES) for _ in range(count)], np.float32)
    zero_point = np.array([chance.choice(NUMBERS) for _ in range(chance.choice((count, count, 0, 1)))], np.int64)
    return replace(tensor, quantization=Quantization(scale, zero_point, chance.choice((0, 0, 3, -1, 9))))


def _operator(model: Model, chance: random.Random) -> Model:
    graph = model.subgraphs[0]
    if not graph.operators:
        return model
    index = chance.randrange(len(graph.operators))
    change = chance.choice((_inputs, _outputs, _options, _options, _no_options))
    changed = change(graph.operators[index], len(graph.tensors), chance)
    return _with_graph(model, operators=_put(graph.operators, index, changed))


def _inputs(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, inputs=_other_indices(operator.inputs, tensors, chance))


def _outputs(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, outputs=_other_indices(operator.outputs, tensors, chance))


def _no_options(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    return replace(operator, options=None)


def _options(operator: Operator, tensors: int, chance: random.Random) -> Operator:
    if operator.options is None or not operator.options.fields:
        return operator
    fields = dict(operator.options.fields)
    name = chance.choice(sorted(fields))
    fields[name] = _other_value(fields[name], chance)
    return replace(operator, options=Record(operator.options.table, fields))


def _other_value(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice(NUMBERS)
    if isinstance(value, float):
        return chance.choice(SCALES)
    if isinstance(value, np.ndarray):
        return np.array([chance.choice(NUMBERS) for _ in range(chance.randrange(6))], value.dtype)
    return value


def _buffer(model: Model, chance: random.Random) -> Model:
    index = chance.randrange(len(model.buffers))
    data = model.buffers[index].data
    if data is None or data.size == 0:
        return model
    changed = data.copy()
    changed[chance.randrange(len(changed))] = chance.randrange(256)
    if chance.random() < 0.3:
        changed = changed[: chance.randrange(len(changed))]
    return replace(model, buffers=_put(model.buffers, index, Buffer(changed)))


def _code(model: Model, chance: random.Random) -> Model:
    index = chance.randrange(len(model.operator_codes))
    code = model.operator_codes[index]
    other = chance.choice(
        (replace(code, version=chance.randrange(12)), replace(code, name="CUSTOM", custom_code="Mine"))
    )
    return replace(model, operator_codes=_put(model.operator_codes, index, other))


def _ends(model: Model, chance: random.Random) -> Model:
    graph = model.subgraphs[0]
    if chance.random() < 0.5:
        return _with_graph(model, inputs=_other_indices(graph.inputs, len(graph.tensors), chance))
    return _with_graph(model, outputs=_other_indices(graph.outputs, len(graph.tensors), chance))


def _other_indices(indices: tuple[int, ...], tensors: int, chance: random.Random) -> tuple[int, ...]:
    other = list(indices)
    if other and chance.random() < 0.3:
        other.pop(chance.randrange(len(other)))
    elif other and chance.random() < 0.7:
        other[chance.randrange(len(other))] = chance.randrange(-2, tensors + 1)
    else:
        other.append(chance.randrange(-1, tensors))
    return tuple(other)


def _put(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _with_graph(model: Model, **changes: Any) -> Model:
    return replace(model, subgraphs=(replace(model.subgraphs[0], **changes), *model.subgraphs[1:]))


CHANGES = (_tensor, _tensor, _tensor, _operator, _operator, _buffer, _code, _ends)
