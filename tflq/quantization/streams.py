"""Streaming models: state in variables, from step to step.

A step that reads each variable before it assigns it is a function of its inputs and states. It is quantized as such,
with states as further inputs and outputs. The samples are consecutive steps of sequences, with the states that the
float model has before each. A state's range holds all values that it has on the way, the same on both ends. The integer
model gets its variables back, with integer values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tflq.engine.api.steps import Stepper
from tflq.engine.runtimes import Step
from tflq.errors import OptionError
from tflq.model.ir import (
    Model,
    Operator,
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
from tflq.model.surgery.cut import operators_named, upstream
from tflq.quantization.draft import options
from tflq.quantization.recipe.recipe import AUTO, NO_TAIL, TYPES, Norms, Recipe
from tflq.quantization.runner import Sample
from tflq.quantization.states import State, bounded, code_of, narrowed
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

    def unrolled(self, sequences: Iterable[Iterable[Sample]]) -> tuple[list[Sample], list[State]]:
        """Return the stateless model's samples for consecutive steps of each sequence, and its bounded states."""
        graph = view(self.step)
        names = {t: str(number) for number, t in enumerate(graph.inputs)}
        for signature in self.step.signature_defs or ():
            names = {t: name for name, t in signature.inputs}
        found, states = list[Sample](), [State(v.read, v.assigned) for v in self.variables]
        for steps in sequences:
            stepper = self.begin(self.model, "litert-ref")
            for sample in steps:
                inputs = {names[t]: sample[t] for t in graph.inputs}
                values = stepper.run(Step(self.root.signature, inputs), keep_all=True).tensors
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

    def stateless(self, states: Sequence[State]) -> Model:
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
