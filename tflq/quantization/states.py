"""States of a step: float tensors that it takes and gives, bounded to one range on both ends, and narrowed to codes.

A step, of a stream or of a loop, is quantized as a function of inputs and states. FAKE_QUANT prescribes each state's
range, so that its codes mean the same before and after the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.facts.versions import quantize_version
from tflq.errors import ModelError
from tflq.model.ir import Model, Operator, OperatorCode, Record, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.schema import enum
from tflq.model.surgery.cut import compact
from tflq.quantization.draft import options
from tflq.quantization.scheme.float_graph import stored_params
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class State:
    """The tensors of a state before and after a step, and its range."""

    before: int
    after: int
    low: float = 0.0
    high: float = 0.0

    def seen(self, values: Mapping[int, Array]) -> State:
        """Return the state with a range that holds both tensors' values, too."""
        ends = [f(values[t], initial=0.0) for t in (self.before, self.after) for f in (np.min, np.max)]
        return replace(self, low=min(self.low, *map(float, ends)), high=max(self.high, *map(float, ends)))


def bounded(
    step: Model, states: Sequence[State], operators: Iterable[Operator], outputs: Sequence[int], inputs: Sequence[int]
) -> Model:
    """Return the step as a model of inputs, then states, to outputs, then states, by some of its operators."""
    graph, codes = view(step), [*step.operator_codes]
    tensors, first, last = list(graph.tensors), list[Operator](), list[Operator]()
    renamed, given = dict[int, int](), list[int]()
    for state in states:
        fields = {"min": state.low, "max": max(state.high, state.low + 1e-6), "num_bits": 16, "narrow_range": False}
        for tensor, added in ((state.before, first), (state.after, last)):
            tensors.append(replace(tensors[tensor], name=f"{tensors[tensor].name}/state"))
            record = options("FakeQuantOptions", **fields)
            added.append(Operator(code_of(codes, "FAKE_QUANT"), (tensor,), (len(tensors) - 1,), record))
        renamed[state.before] = first[-1].outputs[0]
        given.append(last[-1].outputs[0])
        outputs = [given[-1] if t == state.after else t for t in outputs]
    body = [replace(o, inputs=tuple(renamed.get(t, t) for t in o.inputs)) for o in operators]
    edge = (*inputs, *(state.before for state in states))
    made = Subgraph(tuple(tensors), edge, (*outputs, *given), (*first, *body, *last), graph.record.name)
    return compact(replace(step, operator_codes=tuple(codes), subgraphs=(made,), signature_defs=None))


@dataclass(frozen=True, slots=True, eq=False)
class Narrow:
    """A quantized step to be put into another model: indices of codes and buffers are moved.

    `states` are the integer tensors of each state before and after.
    """

    tensors: list[TensorSpec]
    codes: list[OperatorCode]
    body: list[Operator]
    states: list[tuple[int, int]]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def narrowed(made: Model, host: Model, names: Sequence[str]) -> Narrow:
    """Return a quantized step whose last inputs and outputs are states, of these names, as a part of `host`.

    Raises:
        ModelError: A state is not integer.
    """
    graph, count, shift = view(made), len(names), len(host.operator_codes)
    tensors = [replace(t, buffer=t.buffer and t.buffer + len(host.buffers)) for t in graph.tensors]
    body = [replace(o.record, opcode_index=o.record.opcode_index + shift) for o in graph.ops]
    narrow = Narrow(
        tensors,
        [*host.operator_codes, *made.operator_codes],
        body,
        [],
        graph.inputs[: len(graph.inputs) - count],
        graph.outputs[: len(graph.outputs) - count],
    )
    edges = (graph.inputs[len(graph.inputs) - count :], graph.outputs[len(graph.outputs) - count :])
    for name, before, after in zip(names, *edges, strict=True):
        if tensors[before].type == TensorType.FLOAT32:
            before = _narrow_input(narrow, before)
        if tensors[after].type == TensorType.FLOAT32:
            after = _narrow_output(narrow, after)
        if not any(before in operator.inputs for operator in body if operator.outputs):
            tensors[before] = replace(
                tensors[before], type=tensors[after].type, quantization=tensors[after].quantization
            )
        spec, other = tensors[before], tensors[after]
        if stored_params(spec.type, spec.quantization) is None or spec.type != other.type:
            raise ModelError(
                f"{name} stays in float, as the operators at it do, or none reads it; keep_float may name none"
            )
        if not _is_alike(spec, other):  # such as the fixed scale of a TANH
            tensors.append(replace(spec, name=f"{spec.name}/next"))
            kind = TensorType(spec.type)
            code = code_of(narrow.codes, "QUANTIZE", quantize_version(kind, kind))
            body.append(Operator(code, (after,), (len(tensors) - 1,), Record("QuantizeOptions")))
            after = len(tensors) - 1
        narrow.states.append((before, after))
    return narrow


def code_of(codes: list[OperatorCode], name: str, version: int = 1) -> int:
    """Return the index of an operator's code, added if it is missing."""
    code = OperatorCode(enum("BuiltinOperator")[name], name, version)
    if code not in codes:
        codes.append(code)
    return codes.index(code)


def _narrow_input(narrow: Narrow, edge: int) -> int:
    """Return the codes that QUANTIZE computes from a float input, which become the input."""
    for number, operator in enumerate(narrow.body):
        if narrow.codes[operator.opcode_index].name == "QUANTIZE" and operator.inputs[0] == edge:
            made = operator.outputs[0]
            del narrow.body[number]
            narrow.body[:] = [replace(o, inputs=tuple(made if t == edge else t for t in o.inputs)) for o in narrow.body]
            return made
    return edge


def _narrow_output(narrow: Narrow, edge: int) -> int:
    """Return the codes from which DEQUANTIZE makes a float output; the output itself if another operator does."""
    makers = {o.outputs: (narrow.codes[o.opcode_index].name, (*o.inputs, edge)[0]) for o in narrow.body}
    name, given = makers.get((edge,), ("", edge))
    if name == "FAKE_QUANT":  # as of an input, which is no operator's to prescribe
        name, given = makers.get((given,), ("", edge))
    return given if name == "DEQUANTIZE" else edge


def _is_alike(one: TensorSpec, other: TensorSpec) -> bool:
    a, b = stored_params(one.type, one.quantization), stored_params(other.type, other.quantization)
    return a is not None and b is not None and a.scale[0] == b.scale[0] and a.zero_point[0] == b.zero_point[0]
