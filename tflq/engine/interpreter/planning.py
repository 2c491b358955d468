"""Make a plan of bound steps from a model and a profile. All refusals happen here.

If a step's shapes are unknown before the model runs (they depend on an element of an input), it keeps its kernel and is
bound at run time. Everything else is prepared once, also where shapes follow from other shapes (`folding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.engine.interpreter.binding import prepare
from tflq.engine.interpreter.chains import products
from tflq.engine.interpreter.estimate import Estimate
from tflq.engine.interpreter.folding import Folding
from tflq.engine.interpreter.limits import Limits, current_limits
from tflq.engine.interpreter.loading import check_loading
from tflq.engine.interpreter.matrices import matrices_of_codes, of_codes
from tflq.engine.interpreter.operands import node_of, operand_of
from tflq.engine.interpreter.order import check_order, keep_results, known_at_start, last_uses
from tflq.engine.interpreter.plan import Plan, Step
from tflq.engine.interpreter.program import Program, Surroundings
from tflq.engine.interpreter.promises import promises_of
from tflq.engine.interpreter.squares import of_squares, squared_tensors
from tflq.engine.interpreter.unpacking import as_unpacked, unwritten_outputs
from tflq.engine.kernels.compiled_for import refuse_compiled
from tflq.engine.kernels.delegation import unpacks
from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.kernels.table import find, nearest
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import Profile
from tflq.errors import TflqError, UnsupportedError
from tflq.model.ir import CARRIER, GraphView, Model, OperatorView, TensorType, view
from tflq.model.ir.structure import check_graph

#: The promise for outputs that no run writes.
_UNWRITTEN = close("XNNPACK never writes it: the runtime's output is uninitialized memory")


def make_plan(
    model: Model,
    profile: Profile,
    subgraph: int = 0,
    input_shapes: Mapping[int, Shape | None] | None = None,
    limits: Limits | None = None,
    program: Program | None = None,
    *,
    is_part: bool = False,
) -> Plan:
    """Bind `model`'s subgraph under `profile`, within the limits: by default the current ones.

    `input_shapes` replaces shapes of graph inputs, by tensor index; None means a shape that is known only at run time.
    `program` holds the model's other bound subgraphs; a subgraph's plan is part of its caller's program. `is_part`: the
    model was cut out of another, so that its inputs were not resized. If an operator refuses a shape that follows from
    computed values, the plan leaves these to its runs, which report that.
    """
    graph = view(model, subgraph)
    check_graph(model, graph.record)
    check_loading(graph, profile)
    refuse_compiled(graph)
    limits = limits or current_limits()
    program = program or Program(model, profile, limits, make_plan)
    shapes = input_shapes or {}
    makers = {tensor: op.index for op in graph.ops for tensor in op.outputs if tensor >= 0}
    operands = [
        operand_of(graph, index, shapes.get(index), index in makers, is_part) for index in range(len(graph.tensors))
    ]
    check_order(graph, operands)
    folding = Folding(graph, operands)
    try:
        return _plan(graph, program, operands, shapes, makers, folding, is_part)
    except TflqError:
        if not folding.early:
            raise
    return _plan(graph, program, operands, shapes, makers, Folding(graph, operands, is_off=True), is_part)


def _plan(
    graph: GraphView,
    program: Program,
    given: Sequence[Operand],
    shapes: Mapping[int, Shape | None],
    makers: Mapping[int, int],
    folding: Folding,
    is_part: bool,
) -> Plan:
    """Return the plan of a graph with these operands, some of whose shapes follow from values that `folding` finds."""
    profile, limits, operands = program.profile, program.limits, list(given)
    known = known_at_start(graph, operands)
    for tensor in graph.inputs:
        known[tensor] = tensor not in shapes or shapes[tensor] is not None
    expected = {tensor: operands[tensor].shape if known[tensor] else None for tensor in graph.inputs}
    estimate = Estimate(limits, program.derived_memory)
    estimate.derive(operand.value for operand in operands)
    for operand in operands:
        if known[operand.index] and (operand.is_variable or operand.index in graph.inputs):
            estimate.start(operand)
    squared, chained = squared_tensors(graph, profile), products(graph, profile)
    codes = matrices_of_codes(graph, profile)
    uses = last_uses(graph, {**squared, **codes})
    steps = []
    for op in graph.ops:
        instead = next((operands[read[op.index]] for read in (squared, codes) if op.index in read), None)
        step = _step(program, operands, known, op, uses[op.index], estimate, instead, op.index in chained, folding)
        steps.append(step)
        folding.add(step)
        for operand in step.node.outputs:
            operands[operand.index] = as_unpacked(graph, step.node, operand, profile) if unpacks(step.node) else operand
        announced = step.prepared.shapes if step.prepared else (None,) * len(step.outputs)
        for tensor, shape in zip(step.outputs, announced, strict=True):
            known[tensor] = shape is not None
            if shape is not None:
                _check_start(step, operands[tensor], tensor in graph.inputs, shape)
                operands[tensor] = replace(operands[tensor], shape=shape)
                estimate.make(step, operands[tensor])
        estimate.finish(step)
    variables = tuple(o.index for o in operands if o.is_variable)
    unwritten = () if is_part else unwritten_outputs(graph, profile)
    return Plan(
        model=program.model,
        graph=graph,
        profile=profile,
        operands=tuple(operands),
        expected=expected,
        known=tuple(known),
        steps=tuple(steps),
        variables=variables,
        constants=(*(o.value for o in operands), None),
        makers=makers,
        kept=keep_results(graph),
        folding=folding,
        promises={**promises_of(steps, variables), **dict.fromkeys(unwritten, _UNWRITTEN)},
        limits=limits,
        peak_memory=estimate.peak_memory,
        kept_memory=estimate.kept_memory,
        derived_memory=estimate.derived_memory,
        work=estimate.work,
        least_work=estimate.least_work,
        is_settled=estimate.is_settled,
        program=program,
    )


def _check_start(step: Step, operand: Operand, is_input: bool, shape: Shape) -> None:
    """Refuse an operator that changes the shape of a tensor with a value before the model runs."""
    if (is_input or operand.is_variable) and shape != operand.shape:
        step.node.refuse(
            "writes to an input or a variable of another shape", operand, expected=list(operand.shape), got=list(shape)
        )


def _step(
    program: Program,
    operands: Sequence[Operand],
    known: Sequence[bool],
    op: OperatorView,
    last_uses: tuple[int, ...],
    estimate: Estimate,
    instead: Operand | None,
    is_in_chain: bool,
    folding: Folding,
) -> Step:
    """Return the step; its work and calls are counted in `estimate`.

    `instead` is what its operand squares or dequantizes, which it may read in the operand's place.
    """
    around = Surroundings(program)
    node = replace(node_of(operands, op, around, estimate.room), is_in_chain=is_in_chain)
    kernel = _kernel(program.profile, node)
    if kernel.makes is not None:
        node = replace(node, outputs=tuple(replace(output, type=kernel.makes) for output in node.outputs))
    if instead is not None:
        node = of_codes(of_squares(node, kernel, instead), kernel, instead)
    inputs = tuple(-1 if operand is None else operand.index for operand in node.inputs)
    present = [tensor for tensor in inputs if tensor >= 0]
    values_known = all(
        position >= len(node.inputs) or (operand := node.inputs[position]) is None or operand.is_constant
        for position in kernel.shape_operands
    )
    ready = values_known and all(known[tensor] for tensor in present)
    prepared = prepare(kernel, node, program.profile.arithmetic) if ready else None
    if not values_known and all(known[tensor] for tensor in present):
        prepared = _prepare_early(kernel, node, program.profile.arithmetic, folding)
    if prepared is None:
        _check_calls(kernel, node, around)
    outputs = tuple(tensor for tensor in op.outputs if tensor >= 0)
    own = kernel.exactness if values_known or kernel.left is None else kernel.left
    if prepared is not None and prepared.exactness is not None:
        own = prepared.exactness
    promise = own.after(around.promises)
    dtypes = tuple(CARRIER[operand.type] for operand in node.outputs)
    step = Step(
        op.index, node.op, node, kernel, prepared, inputs, outputs, last_uses, dtypes, promise, estimate.live_bytes
    )
    estimate.call(step, around)
    return step


def _prepare_early(kernel: Kernel, node: Node, arithmetic: Arithmetic, folding: Folding) -> Prepared | None:
    """Prepare a node with computed shape operands as when it is reached; None if their values are not certain yet."""
    inputs = list(node.inputs)
    for position in kernel.shape_operands:
        operand = inputs[position] if position < len(inputs) else None
        if operand is not None and not operand.is_constant:
            value = folding.value(operand.index)
            if value is None:
                return None
            inputs[position] = replace(operand, value=value, is_revealed=True)
    return prepare(kernel, replace(node, inputs=tuple(inputs)), arithmetic)


def _check_calls(kernel: Kernel, node: Node, around: Surroundings) -> None:
    """Let subgraphs that are called with unknown shapes refuse what does not depend on them."""
    for option in kernel.calls:
        subgraphs = node.options.get(option)
        for subgraph in np.atleast_1d([] if subgraphs is None else subgraphs):
            around.check(int(subgraph))


def _kernel(profile: Profile, node: Node) -> Kernel:
    inputs = [None if o is None else o.type for o in node.inputs]
    sparse = tuple(i for i, o in enumerate(node.inputs) if o is not None and o.sparsity is not None)
    return kernel_for(profile, node.op, node.version, node.index, inputs, [o.type for o in node.outputs], sparse)


def kernel_for(
    profile: Profile,
    op: str,
    version: int,
    index: int,
    inputs: Sequence[TensorType | None],
    outputs: Sequence[TensorType],
    sparse: tuple[int, ...] = (),
) -> Kernel:
    """Return the profile's row for operator `index`, on operands of those types.

    Raises:
        UnsupportedError: There is none.
    """
    kernel = find(profile.kernels, op, version, inputs, outputs, sparse)
    if kernel is None:
        names = " ".join("none" if t is None else t.label for t in inputs) + " -> " + " ".join(t.label for t in outputs)
        raise UnsupportedError(
            op,
            version=version,
            types=names,
            index=index,
            profile=profile.name,
            reason=f"inputs {list(sparse)} are stored sparsely" if sparse else profile.unlearned(op, names),
            nearest=nearest(profile.kernels, op, version, inputs, outputs),
        )
    return kernel
