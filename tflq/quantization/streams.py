"""Streaming models: state in variables, from step to step.

A step that reads each variable before it assigns it is a function of its inputs and states. It is quantized as such,
with states as further inputs and outputs. The samples are consecutive steps of sequences, with the states that the
float model has before each. A state's range holds all values that it has on the way, the same on both ends. The integer
model gets its variables back, with integer values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.engine.api.steps import Stepper
from tflq.engine.runtimes import Step
from tflq.errors import ModelError, OptionError
from tflq.model.ir import (
    Model,
    Operator,
    OperatorCode,
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
from tflq.model.ir.schema import enum
from tflq.model.surgery.cut import compact, operators_named
from tflq.quantization.draft import options
from tflq.quantization.recipe.recipe import AUTO, NO_TAIL, TYPES, Recipe
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.float_graph import stored_params
from tflq.quantization.variables import (
    ASSIGN,
    HANDLE,
    INIT,
    READ,
    Key,
    Variable,
    refuse_inner,
    straighten,
    variables_of,
    with_first_values,
)
from tflq.quantization.weights import rewriting

_OF_STATE = (HANDLE, READ, ASSIGN, INIT)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A streaming model. `step` is the model with the subgraph first that callers run at each step, straightened.

    `indices` are its operators' in the model.
    """

    model: Model
    root: Root
    step: Model
    variables: tuple[Variable, ...]
    indices: tuple[int, ...]

    def begin(self, model: Model, profile: str) -> Stepper:
        """Return a model, this or the integer one, with the first values of its variables."""
        stepper = Stepper(model, profile)
        if not any(op.builtin == INIT for op in view(self.step).ops):
            for other in roots(self.model):
                if other != self.root:
                    stepper.run(Step(other.signature))
        return stepper

    def unrolled(self, sequences: Iterable[Iterable[Sample]]) -> tuple[list[Sample], dict[Key, tuple[float, float]]]:
        """Return the stateless model's samples for consecutive steps of each sequence, and states' ranges."""
        graph = view(self.step)
        names = {t: str(number) for number, t in enumerate(graph.inputs)}
        for signature in self.step.signature_defs or ():
            names = {t: name for name, t in signature.inputs}
        found, ranges = list[Sample](), dict[Key, tuple[float, float]]()
        for steps in sequences:
            stepper = self.begin(self.model, "litert-ref")
            for sample in steps:
                inputs = {names[t]: sample[t] for t in graph.inputs}
                values = stepper.run(Step(self.root.signature, inputs), keep_all=True).tensors
                found.append({**sample, **{v.read: values[v.read].copy() for v in self.variables}})
                for variable in self.variables:
                    low, high = ranges.get(variable.key, (0.0, 0.0))
                    both = values[variable.read], values[variable.assigned]
                    least, most = min(float(v.min()) for v in both), max(float(v.max()) for v in both)
                    ranges[variable.key] = min(low, least), max(high, most)
        return found, ranges

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

    def stateless(self, ranges: Mapping[Key, tuple[float, float]]) -> Model:
        """Return the step with states as further inputs and outputs, whose ranges FAKE_QUANT prescribes."""
        graph = view(self.step)
        tensors, first, last = list(graph.tensors), list[Operator](), list[Operator]()
        codes = [*self.step.operator_codes]
        renamed, states, outputs = dict[int, int](), list[int](), list(graph.outputs)
        for variable in self.variables:
            low, high = ranges[variable.key]
            fields = {"min": low, "max": max(high, low + 1e-6), "num_bits": 16, "narrow_range": False}
            for tensor, operators in ((variable.read, first), (variable.assigned, last)):
                tensors.append(replace(tensors[tensor], name=f"{tensors[tensor].name}/state"))
                record = options("FakeQuantOptions", **fields)
                operators.append(Operator(_add(codes, "FAKE_QUANT"), (tensor,), (len(tensors) - 1,), record))
            renamed[variable.read] = first[-1].outputs[0]
            states.append(last[-1].outputs[0])
            outputs = [states[-1] if t == variable.assigned else t for t in outputs]
        body = [
            replace(op.record, inputs=tuple(renamed.get(t, t) for t in op.inputs))
            for op in graph.ops
            if op.builtin not in _OF_STATE
        ]
        inputs = (*graph.inputs, *(variable.read for variable in self.variables))
        made = Subgraph(tuple(tensors), inputs, (*outputs, *states), (*first, *body, *last), graph.record.name)
        return compact(replace(self.step, operator_codes=tuple(codes), subgraphs=(made,), signature_defs=None))

    def restored(self, made: Model) -> Model:
        """Return the integer model with its variables.

        Raises:
            ModelError: A state is not integer.
        """
        graph, count = view(made), len(self.variables)
        codes = [*self.step.operator_codes, *made.operator_codes]
        tensors = [replace(t, buffer=t.buffer + len(self.step.buffers)) for t in graph.tensors]
        body = [
            replace(o.record, opcode_index=o.record.opcode_index + len(self.step.operator_codes)) for o in graph.ops
        ]
        first = [op.record for op in view(self.step).ops if op.builtin == INIT]
        last, states = list[Operator](), dict[Key, TensorSpec]()
        for variable, read, value in zip(self.variables, graph.inputs[-count:], graph.outputs[-count:], strict=True):
            if tensors[read].type == TensorType.FLOAT32:
                read, body = _narrow_input(body, codes, read)
            if tensors[value].type == TensorType.FLOAT32:
                value = _narrow_output(body, codes, value)
            spec, other = tensors[read], tensors[value]
            if stored_params(spec.type, spec.quantization) is None or spec.type != other.type:
                raise ModelError(
                    f"variable {variable.key[1]!r} stays in float, as an operator at it does; keep_float may name none"
                )
            container, name = variable.key
            tensors.append(TensorSpec(name or "variable", TensorType.RESOURCE, ()))
            handle = len(tensors) - 1
            if not _is_alike(spec, other):  # such as the fixed scale of a TANH
                tensors.append(replace(spec, name=f"{spec.name}/next"))
                value, given = len(tensors) - 1, value
                last.append(Operator(_add(codes, "QUANTIZE"), (given,), (value,), Record("QuantizeOptions")))
            record = options("VarHandleOptions", container=container, shared_name=name)
            first.append(Operator(_add(codes, HANDLE), (), (handle,), record))
            first.append(Operator(_add(codes, READ), (handle,), (read,), Record("ReadVariableOptions")))
            last.append(Operator(_add(codes, ASSIGN), (handle, value), (), Record("AssignVariableOptions")))
            states[variable.key] = spec
        needed, kept = {*graph.outputs[:-count], *(t for op in last for t in op.inputs)}, list[Operator]()
        for operator in reversed(body):
            if needed.intersection(operator.outputs):
                kept.insert(0, operator)
                needed.update(operator.inputs)
        operators = (*first, *kept, *last)
        step = Subgraph(tuple(tensors), graph.inputs[:-count], graph.outputs[:-count], operators, graph.record.name)
        buffers = [*self.step.buffers, *made.buffers]
        others = [with_first_values(self.step, k, states, buffers) for k in range(1, len(self.step.subgraphs))]
        metadata = tuple((n, b + len(self.step.buffers)) for n, b in made.metadata or ())
        whole = replace(
            self.step,
            operator_codes=tuple(codes),
            buffers=tuple(buffers),
            subgraphs=(step, *others),
            signature_defs=None,
            metadata=metadata,
        )
        whole = rewriting.compact(whole)
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
    asked = {"portable": recipe.portable, "split_outputs": recipe.split_outputs, "float_tail": has_tail}
    if stream is not None and any(asked.values()):
        raise OptionError(f"a streaming model takes no {next(name for name, value in asked.items() if value)}")
    return stream


def _narrow_input(body: list[Operator], codes: Sequence[OperatorCode], edge: int) -> tuple[int, list[Operator]]:
    """Return the codes that QUANTIZE computes from a float input, and the operators with these as the input."""
    for number, operator in enumerate(body):
        if codes[operator.opcode_index].name == "QUANTIZE" and operator.inputs[0] == edge:
            made = operator.outputs[0]
            others = [*body[:number], *body[number + 1 :]]
            return made, [replace(o, inputs=tuple(made if t == edge else t for t in o.inputs)) for o in others]
    return edge, body


def _narrow_output(body: list[Operator], codes: Sequence[OperatorCode], edge: int) -> int:
    """Return the codes from which DEQUANTIZE makes a float output; the output itself if another operator does."""
    makers = {operator.outputs: (codes[operator.opcode_index].name, (*operator.inputs, edge)[0]) for operator in body}
    name, given = makers.get((edge,), ("", edge))
    if name == "FAKE_QUANT":  # as of an input, which is no operator's to prescribe
        name, given = makers.get((given,), ("", edge))
    return given if name == "DEQUANTIZE" else edge


def _is_alike(one: TensorSpec, other: TensorSpec) -> bool:
    a, b = stored_params(one.type, one.quantization), stored_params(other.type, other.quantization)
    return a is not None and b is not None and a.scale[0] == b.scale[0] and a.zero_point[0] == b.zero_point[0]


def _add(codes: list[OperatorCode], name: str) -> int:
    """Return the index of an operator's code of version 1, added if it is missing."""
    code = OperatorCode(enum("BuiltinOperator")[name], name, 2 if name == "QUANTIZE" else 1)
    if code not in codes:
        codes.append(code)
    return codes.index(code)
