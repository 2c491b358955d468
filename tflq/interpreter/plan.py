"""From a model and a profile to bound steps. All refusals happen here.

A step whose shapes cannot be known before the model runs (they hang on a computed tensor) keeps its kernel and is bound
when it is reached; everything else is prepared once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import ModelError, OperatorFailed, TflqError, UndefinedResultError, UnsupportedError
from tflq.interpreter.constants import block_scales_of, constant_of
from tflq.interpreter.memory import DEFAULT_MEMORY, Budget
from tflq.interpreter.program import Program, Surroundings
from tflq.interpreter.promises import promises_of
from tflq.ir import CARRIER, Model, Operator, Quantization, Record, Subgraph, TensorType
from tflq.kernels.kernel import (
    SCALES_ELSEWHERE,
    Array,
    Exactness,
    Kernel,
    Node,
    Operand,
    Prepared,
    Shape,
    find,
    nearest,
)
from tflq.numerics.arithmetic import Arithmetic
from tflq.profiles import Profile


class _Zeros(Mapping[str, int]):
    """Options that the file leaves out: TFLite hands its kernels zeroed parameters then."""

    def __getitem__(self, key: str) -> int:
        return 0

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


NO_OPTIONS = Record("", _Zeros())


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operator in execution order. `prepared` is None for a step that is bound when it is reached."""

    index: int
    op: str
    node: Node
    kernel: Kernel
    prepared: Prepared | None
    inputs: tuple[int, ...]  # tensor indices, -1 where absent
    outputs: tuple[int, ...]  # those that are present
    last_uses: tuple[int, ...]  # tensors that no later step reads
    promise: Exactness  # of its results, as long as its inputs are the runtime's own

    @property
    def place(self) -> str:
        """Which operator, as errors begin."""
        return f"operator {self.index} {self.op}: "

    def bind(self, arithmetic: Arithmetic, values: Sequence[Array | None]) -> Prepared:
        """Prepare with the shapes, and for shape operands the values, that the inputs have now."""
        reveal = self.kernel.shape_operands
        operands = tuple(
            None if operand is None or value is None else _with_value(operand, value, position in reveal)
            for position, (operand, value) in enumerate(zip(self.node.inputs, values, strict=True))
        )
        return prepare(self.kernel, replace(self.node, inputs=operands), arithmetic)


def _with_value(operand: Operand, value: Array, reveal: bool) -> Operand:
    if operand.is_constant:
        return replace(operand, shape=value.shape, value=value)
    return replace(operand, shape=value.shape, value=value if reveal else None, is_revealed=reveal)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A subgraph bound to a profile, for given input shapes."""

    model: Model
    subgraph: Subgraph
    profile: Profile
    operands: tuple[Operand, ...]  # by tensor index; shapes as far as they are known
    known: tuple[bool, ...]  # by tensor index: whether the operand's shape is certain before the model runs
    steps: tuple[Step, ...]
    variables: tuple[int, ...]  # tensors that keep their value from run to run
    constants: tuple[Array | None, ...]  # by tensor index, and None at the end: what index -1 reads
    makers: Mapping[int, int]  # tensor -> the operator that makes it
    promises: Mapping[int, Exactness]  # tensor -> what it is promised to be, from the graph's inputs on
    memory_limit: int  # bytes of tensors alive at the same time, constants left out
    peak_memory: int  # the same as far as it is known before the model runs
    program: Program  # the other subgraphs, bound as far as they are called

    @property
    def inputs(self) -> tuple[int, ...]:
        """Tensor indices of the graph's inputs."""
        return self.subgraph.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """Tensor indices of the graph's outputs."""
        return self.subgraph.outputs


def make_plan(
    model: Model, profile: Profile, subgraph: int = 0, input_shapes: Mapping[int, Shape | None] | None = None,
    memory_limit: int = DEFAULT_MEMORY, program: Program | None = None,
) -> Plan:  # fmt: skip
    """Bind `model`'s subgraph under `profile`.

    `input_shapes` replaces shapes of graph inputs, by tensor index; None stands for a shape that only the run can tell.
    `program` holds what else of the model is bound; a subgraph's plan is part of its caller's program.
    """
    if not 0 <= subgraph < len(model.subgraphs):
        raise ModelError("no such subgraph", expected=f"below {len(model.subgraphs)}", got=subgraph)
    graph = model.subgraphs[subgraph]
    check_indices(graph)
    shapes = input_shapes or {}
    makers = {tensor: index for index, o in enumerate(graph.operators) for tensor in o.outputs if tensor >= 0}
    operands = [
        _operand(model, graph, index, shapes.get(index), index in makers) for index in range(len(graph.tensors))
    ]
    _check_order(graph, operands)
    known = _known_at_start(graph, operands)
    for tensor in graph.inputs:
        known[tensor] = tensor not in shapes or shapes[tensor] is not None
    program = program or Program(model, profile, memory_limit, make_plan)
    budget = Budget(memory_limit)
    for operand in operands:
        if known[operand.index] and (operand.is_variable or operand.index in graph.inputs):
            budget.hold(operand)
    last_uses = _last_uses(graph)
    steps = []
    for index, operator in enumerate(graph.operators):
        step, called_memory = _step(program, operands, known, index, operator, last_uses[index])
        steps.append(step)
        budget.check_call(called_memory, step.place)
        made = step.prepared.shapes if step.prepared else (None,) * len(step.outputs)
        for tensor, shape in zip(step.outputs, made, strict=True):
            known[tensor] = shape is not None
            if shape is not None:
                operands[tensor] = replace(operands[tensor], shape=shape)
                budget.hold(operands[tensor], step.place)
        budget.release(step.last_uses)
    variables = tuple(o.index for o in operands if o.is_variable)
    return Plan(
        model=model,
        subgraph=graph,
        profile=profile,
        operands=tuple(operands),
        known=tuple(known),
        steps=tuple(steps),
        variables=variables,
        constants=(*(o.value for o in operands), None),
        makers=makers,
        promises=promises_of(steps, variables),
        memory_limit=memory_limit,
        peak_memory=budget.peak,
        program=program,
    )


def prepare(kernel: Kernel, node: Node, arithmetic: Arithmetic) -> Prepared:
    """Run a kernel's prepare; whatever it raises unforeseen becomes an OperatorFailed."""
    try:
        with np.errstate(all="ignore"):
            prepared = kernel.prepare(node, arithmetic)
    except UndefinedResultError as error:
        raise UndefinedResultError(error.function, error.reason, op=node.op, index=node.index) from error
    except (TflqError, MemoryError):
        raise
    except Exception as error:
        raise OperatorFailed(node.op, node.index, "prepare", f"{type(error).__name__}: {error}") from error
    if len(prepared.shapes) != len(node.outputs):
        node.refuse("number of outputs", expected=len(prepared.shapes), got=len(node.outputs))
    return prepared


def _step(
    program: Program, operands: Sequence[Operand], known: Sequence[bool], index: int, operator: Operator,
    last_uses: tuple[int, ...],
) -> tuple[Step, int]:  # fmt: skip
    """The step, and how many bytes the subgraphs that it calls take at most."""
    around = Surroundings(program)
    node = _node(program.model, operands, index, operator, around)
    kernel = _kernel(program.profile, node)
    present = [tensor for tensor in operator.inputs if tensor >= 0]
    values_known = all(
        position >= len(node.inputs) or (operand := node.inputs[position]) is None or operand.is_constant
        for position in kernel.shape_operands
    )
    ready = values_known and all(known[tensor] for tensor in present)
    prepared = prepare(kernel, node, program.profile.arithmetic) if ready else None
    if not ready:
        _check_calls(kernel, node, around)
    outputs = tuple(tensor for tensor in operator.outputs if tensor >= 0)
    promise = kernel.exactness.after(around.promises)
    step = Step(index, node.op, node, kernel, prepared, operator.inputs, outputs, last_uses, promise)
    return step, around.peak_memory


def _check_calls(kernel: Kernel, node: Node, around: Surroundings) -> None:
    """Let subgraphs that are called with shapes yet unknown refuse what they can refuse without them."""
    for option in kernel.calls:
        subgraphs = node.options.get(option)
        for subgraph in np.atleast_1d([] if subgraphs is None else subgraphs):
            around.check(int(subgraph))


def _node(model: Model, operands: Sequence[Operand], index: int, operator: Operator, around: Surroundings) -> Node:
    if not 0 <= operator.opcode_index < len(model.operator_codes):
        raise ModelError("operator code out of range", index=index, got=operator.opcode_index)
    code = model.operator_codes[operator.opcode_index]
    return Node(
        op=code.custom_code or code.name if code.name == "CUSTOM" else code.name,
        version=code.version,
        index=index,
        inputs=tuple(operands[t] if t >= 0 else None for t in operator.inputs),
        outputs=tuple(operands[t] for t in operator.outputs if t >= 0),
        options=operator.options or operator.options_2 or NO_OPTIONS,
        intermediates=tuple(operands[t] for t in operator.intermediates or () if t >= 0),
        custom_options=bytes(operator.custom_options or b""),
        surroundings=around,
    )


def _kernel(profile: Profile, node: Node) -> Kernel:
    inputs = [None if o is None else o.type for o in node.inputs]
    outputs = [o.type for o in node.outputs]
    sparse = tuple(i for i, o in enumerate(node.inputs) if o is not None and o.sparsity is not None)
    kernel = find(profile.kernels, node.op, node.version, inputs, outputs, sparse)
    if kernel is None:
        names = " ".join("none" if t is None else t.label for t in inputs) + " -> " + " ".join(t.label for t in outputs)
        raise UnsupportedError(
            node.op, version=node.version, types=names, index=node.index, profile=profile.name,
            reason=f"inputs {list(sparse)} are stored sparsely" if sparse else "",
            nearest=nearest(profile.kernels, node.op, node.version, inputs, outputs),
        )  # fmt: skip
    return kernel


def _operand(model: Model, graph: Subgraph, index: int, shape: Shape | None, made: bool) -> Operand:
    spec = graph.tensors[index]
    if not isinstance(spec.type, TensorType):
        raise UnsupportedError("tensor", types=f"type {spec.type}", reason=f"tensor {spec.name!r}")
    value = None if spec.is_variable or index in graph.inputs else constant_of(model, spec)
    if value is not None and made:
        raise ModelError("a constant is written to", tensor=spec.name or f"#{index}")
    if value is None and not made and index not in graph.inputs and 0 in spec.shape:
        value = np.empty(spec.shape, CARRIER[spec.type])  # needs no buffer to be a constant
    return Operand(
        index=index,
        name=spec.name or "",
        type=spec.type,
        shape=spec.shape if shape is None else shape,
        quantization=visible(spec.quantization),
        value=value,
        is_variable=spec.is_variable,
        sparsity=None if value is None else spec.sparsity,
        block_scales=block_scales_of(model, graph, spec),
    )


def visible(quantization: Quantization | None) -> Quantization | None:
    """Quantization as LiteRT's kernels find it: without plain scales where the details name tensors that hold scales.

    Source: LiteRT 2.3 InterpreterBuilder::ParseQuantization.
    """
    details = None if quantization is None else quantization.details
    if quantization is None or details is None or details.table not in SCALES_ELSEWHERE:
        return quantization
    return replace(quantization, scale=quantization.scale[:0], zero_point=quantization.zero_point[:0])


def _known_at_start(graph: Subgraph, operands: Sequence[Operand]) -> list[bool]:
    known = [o.is_constant or o.is_variable for o in operands]
    for tensor in graph.inputs:
        known[tensor] = True
    return known


def _check_order(graph: Subgraph, operands: Sequence[Operand]) -> None:
    """Refuse a graph in which something is read that nothing before has made."""
    made = {o.index for o in operands if o.is_constant or o.is_variable} | set(graph.inputs)
    for index, operator in enumerate(graph.operators):
        for tensor in operator.inputs:
            if tensor >= 0 and tensor not in made:
                raise ModelError("is read before it is made", index=index, tensor=operands[tensor].name or f"#{tensor}")
        made.update(operator.outputs)
    for tensor in graph.outputs:
        if tensor not in made:
            raise ModelError("graph output is never made", tensor=operands[tensor].name or f"#{tensor}")


def _last_uses(graph: Subgraph) -> list[tuple[int, ...]]:
    """For every operator, the tensors that are read or made there for the last time and are no graph outputs."""
    kept = set(graph.outputs)
    last: dict[int, int] = {}
    for index, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            if tensor >= 0 and tensor not in kept:
                last[tensor] = index
    uses: list[list[int]] = [[] for _ in graph.operators]
    for tensor, index in last.items():
        uses[index].append(tensor)
    return [tuple(tensors) for tensors in uses]


def check_indices(graph: Subgraph) -> None:
    """Refuse tensor indices that the graph does not have; -1 stands for an absent operand."""
    count = len(graph.tensors)
    for tensor in (*graph.inputs, *graph.outputs):
        if not 0 <= tensor < count:
            raise ModelError(
                "tensor index of a graph input or output out of range", expected=f"below {count}", got=tensor
            )
    for index, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs, *(operator.intermediates or ())):
            if not -1 <= tensor < count:
                raise ModelError("tensor index out of range", index=index, expected=f"below {count}", got=tensor)
