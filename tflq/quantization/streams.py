"""Streaming models: states from step to step become inputs and outputs.

States of a step: float tensors that it takes and gives, bounded to one range on both ends, and narrowed to codes.

A step, of a stream or of a loop, is quantized as a function of inputs and states. FAKE_QUANT prescribes each state's
range, so that its codes mean the same before and after the step.

Variables of a streaming model's step, and their first values.

Streaming models: state in variables, from step to step.

A step that reads each variable before it assigns it is a function of its inputs and states. It is quantized as such,
with states as further inputs and outputs. The samples are consecutive steps of sequences, with the states that the
float model has before each. A state's range holds all values that it has on the way, the same on both ends. The integer
model gets its variables back, with integer values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.api.signature import Stepper
from tflq.engine.kernels.facts.rules import quantize_version
from tflq.engine.runtimes import Invocation
from tflq.errors import ModelError, OptionError
from tflq.model.ir import (
    Buffer,
    GraphView,
    Model,
    Operator,
    OperatorCode,
    OperatorView,
    Record,
    Root,
    SignatureDef,
    Subgraph,
    TensorSpec,
    TensorType,
    rooted,
    roots,
    view,
)
from tflq.model.ir.model import enum
from tflq.model.ir.signatures import call, reach
from tflq.model.surgery.cut import compact, operators_named, upstream
from tflq.quantization.draft import options
from tflq.quantization.frontier import Sample
from tflq.quantization.recipe import AUTO, NO_TAIL, TYPES, Norms, Recipe
from tflq.quantization.scheme.float_graph import stored_params
from tflq.quantization.weights import forms
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class StreamState:
    """The tensors of a state before and after a step, and its range."""

    before: int
    after: int
    low: float = 0.0
    high: float = 0.0

    def seen(self, values: Mapping[int, Array]) -> StreamState:
        """Return the state with a range that holds both tensors' values, too."""
        ends = [f(values[t], initial=0.0) for t in (self.before, self.after) for f in (np.min, np.max)]
        return replace(self, low=min(self.low, *map(float, ends)), high=max(self.high, *map(float, ends)))


def bounded(
    step: Model,
    states: Sequence[StreamState],
    operators: Iterable[Operator],
    outputs: Sequence[int],
    inputs: Sequence[int],
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


#: A variable: container and name.
Key = tuple[str, str]
HANDLE, READ, ASSIGN, INIT = "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"


@dataclass(frozen=True, slots=True)
class StepVariable:
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


def variables_of(graph: GraphView) -> tuple[StepVariable, ...]:
    """Return the variables of a straightened step, in the order of their assignment; see `stream_of` for errors."""
    handles, reads, found = dict[int, Key](), dict[Key, int](), dict[Key, StepVariable]()
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
            found[key] = StepVariable(key, reads[key], op.inputs[1])
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


_OF_STATE = (HANDLE, READ, ASSIGN, INIT)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A streaming model. `step` is the model with the subgraph first that callers run at each step, straightened.

    `indices` are its operators' in the model.
    """

    model: Model
    root: Root
    step: Model
    variables: tuple[StepVariable, ...]
    indices: tuple[int, ...]

    def begin(self, model: Model, profile: str) -> Stepper:
        """Return a model, this or the integer one, with the first values of its variables."""
        stepper = Stepper(model, profile)
        if not any(op.builtin == INIT for op in view(self.step).ops):
            for other in roots(self.model):
                if other != self.root:
                    stepper.run(Invocation(other.signature))
        return stepper

    def unrolled(self, sequences: Iterable[Iterable[Sample]]) -> tuple[list[Sample], list[StreamState]]:
        """Return the stateless model's samples for consecutive steps of each sequence, and its bounded states."""
        graph = view(self.step)
        names = {t: str(number) for number, t in enumerate(graph.inputs)}
        for signature in self.step.signature_defs or ():
            names = {t: name for name, t in signature.inputs}
        found, states = list[Sample](), [StreamState(v.read, v.assigned) for v in self.variables]
        for steps in sequences:
            stepper = self.begin(self.model, "litert-ref")
            for sample in steps:
                inputs = {names[t]: sample[t] for t in graph.inputs}
                values = stepper.run(Invocation(self.root.signature, inputs), keep_all=True).tensors
                found.append({**sample, **{v.read: values[v.read].copy() for v in self.variables}})
                states = [state.seen(values) for state in states]
        return found, states

    @property
    def origins(self) -> tuple[int, ...]:
        """The operators of the stateless model, by their indices in the model's step; -1 for those that it adds."""
        added = (-1,) * len(self.variables)
        kept = (self.indices[op.index] for op in view(self.step).ops if op.builtin not in _OF_STATE)
        return (*added, *kept, *added)

    def named(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words for operators of the model's step as indices in the stateless model."""
        wanted = operators_named(rooted(self.model, self.root), words)
        return tuple(str(k) for k, index in enumerate(self.origins) if index in wanted)

    def stateless(self, states: Sequence[StreamState]) -> Model:
        """Return the step with states as further inputs and outputs, whose ranges FAKE_QUANT prescribes."""
        graph = view(self.step)
        body = (op.record for op in graph.ops if op.builtin not in _OF_STATE)
        return bounded(self.step, states, body, graph.outputs, graph.inputs)

    def restored(self, made: Model) -> Model:
        """Return the integer model with its variables.

        Raises:
            ModelError: A state is not integer.
        """
        graph = view(self.step)
        narrow = narrowed(made, self.step, [f"variable {variable.key[1]!r}" for variable in self.variables])
        first = [op.record for op in graph.ops if op.builtin == INIT]
        last, specs = list[Operator](), dict[Key, TensorSpec]()
        for variable, (read, value) in zip(self.variables, narrow.states, strict=True):
            container, name = variable.key
            narrow.tensors.append(TensorSpec(name or "variable", TensorType.RESOURCE, ()))
            handle = len(narrow.tensors) - 1
            record = options("VarHandleOptions", container=container, shared_name=name)
            first.append(Operator(code_of(narrow.codes, HANDLE), (), (handle,), record))
            first.append(Operator(code_of(narrow.codes, READ), (handle,), (read,), Record("ReadVariableOptions")))
            record = Record("AssignVariableOptions")
            last.append(Operator(code_of(narrow.codes, ASSIGN), (handle, value), (), record))
            specs[variable.key] = narrow.tensors[read]
        body = upstream(narrow.body, (*narrow.outputs, *(after for _, after in narrow.states)))
        operators = (*first, *body, *last)
        step = Subgraph(tuple(narrow.tensors), narrow.inputs, narrow.outputs, operators, view(made).record.name)
        buffers = [*self.step.buffers, *made.buffers]
        others = [with_first_values(self.step, k, specs, buffers) for k in range(1, len(self.step.subgraphs))]
        metadata = tuple((n, b + len(self.step.buffers)) for n, b in made.metadata or ())
        whole = replace(
            self.step,
            operator_codes=tuple(narrow.codes),
            buffers=tuple(buffers),
            subgraphs=(step, *others),
            signature_defs=None,
            metadata=metadata,
        )
        whole = forms.compact(whole)
        placed = rooted(whole, Root(None, self.root.subgraph)) if self.root.subgraph else whole
        return replace(placed, signature_defs=self._signatures(step))

    def _signatures(self, step: Subgraph) -> tuple[SignatureDef, ...] | None:
        """Return the signatures, with the step's new tensors."""
        graph, signatures = view(self.step), self.model.signature_defs
        new = {
            **dict(zip(graph.inputs, step.inputs, strict=True)),
            **dict(zip(graph.outputs, step.outputs, strict=True)),
        }
        return signatures and tuple(
            s
            if s.subgraph_index != self.root.subgraph
            else replace(
                s, inputs=tuple((n, new[t]) for n, t in s.inputs), outputs=tuple((n, new[t]) for n, t in s.outputs)
            )
            for s in signatures
        )


def stream_of(model: Model) -> Stream | None:
    """Return the model as a stream; None if it has no step with variables, or callers run several with inputs.

    Raises:
        ModelError: The step assigns a variable without reading it, or no float that it computes, or reads one without
            assigning it, or leaves that to a subgraph.
    """
    every = roots(model)
    steps = [root for root in every if model.subgraphs[root.subgraph].inputs]
    if len(steps) != 1:
        return None
    (root,) = steps
    step = rooted(model, root)
    if not any(op.builtin in (READ, ASSIGN) for op in view(step).ops):
        return None
    refuse_inner(step)
    step, indices = straighten(step)
    return Stream(model, root, step, variables_of(view(step)), indices)


def integer_stream(model: Model, recipe: Recipe) -> Stream | None:
    """Return the stream whose states become integer; None if the recipe's mode leaves activations in float.

    Raises:
        OptionError: The recipe asks for what streams do not take.
        ModelError: See `stream_of`.
    """
    stream = None if TYPES[recipe.mode].data is None else stream_of(model)
    has_tail = recipe.float_tail not in (AUTO, NO_TAIL)
    has_norms = recipe.norms in (Norms.INT16, Norms.FLOAT)
    asked = {
        "portable": recipe.portable,
        "split_outputs": recipe.split_outputs,
        "float_tail": has_tail,
        "norms": has_norms,
    }
    if stream is not None and any(asked.values()):
        raise OptionError(f"a streaming model takes no {next(name for name, value in asked.items() if value)}")
    return stream
