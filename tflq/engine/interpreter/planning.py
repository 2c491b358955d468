"""Make a plan of bound steps from a model and a profile. All refusals happen here.

The subgraphs that other subgraphs of a model call: bound at the first call, and then kept.

The resources of a plan, added up while its steps are bound and compared with the limits.

Values that are certain before the model runs: those that operators compute from shapes and constants alone.

Exporters write a shape with an open batch as operators: SHAPE, STRIDED_SLICE and PACK before a RESHAPE. Once the shapes
of the inputs are planned, these values cannot change. They are computed when an operator needs one of them to be
prepared, by the operators' own kernels, so that their bits are those of a run.

Files that a runtime refuses to load, before it prepares an operator.

Source: LiteRT 2.3 interpreter_builder.cc ParseQuantization, Subgraph::SetTensorParametersReadOnly; TensorFlow 2.7 to
2.14, the same. TensorFlow Lite Micro looks at neither.

If a step's shapes are unknown before the model runs (they depend on an element of an input), it keeps its kernel and is
bound at run time. Everything else is prepared once, also where shapes follow from other shapes (`folding`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.engine.interpreter.binding import node_of, operand_of, prepare
from tflq.engine.interpreter.evaluation import evaluate
from tflq.engine.interpreter.fusions import as_unpacked, fusions, reading_instead, unwritten_outputs
from tflq.engine.interpreter.plan import (
    DEFAULT_WORK,
    PREPARE_STEP_WORK,
    PREPARE_WORK,
    Bindings,
    Footprint,
    Limits,
    MemoryBudget,
    Meter,
    Plan,
    PlanCost,
    Shapes,
    Step,
    beyond,
    call_work,
    check_order,
    current_limits,
    keep_results,
    known_at_start,
    last_uses,
    promises_of,
    size_of,
)
from tflq.engine.kernels.delegation import unpacks
from tflq.engine.kernels.families.custom_options import refuse_compiled
from tflq.engine.kernels.kernel import (
    SCALES_ELSEWHERE,
    Callee,
    Exactness,
    Kernel,
    Node,
    Operand,
    Prepared,
    Shape,
    close,
)
from tflq.engine.kernels.table import find, nearest
from tflq.engine.kernels.validity import SPEC, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import Profile
from tflq.errors import LimitError, ModelError, TflqError, UnsupportedError
from tflq.model.ir import CARRIER, GraphView, Model, OperatorView, TensorSpec, TensorType, view
from tflq.model.ir.constants import stored, surplus
from tflq.model.ir.graph import check_graph
from tflq.typing import Array

#: Maximum number of levels of subgraphs that call each other.
_DEEPEST = 50
#: Number of kept plans of one subgraph, each for a combination of input shapes.
_KEPT = 16


class Program:
    """Plans of called subgraphs, by subgraph and input shapes, on which alone they depend."""

    def __init__(self, model: Model, profile: Profile, limits: Limits, planner: Callable[..., Plan]) -> None:
        self.model, self.profile, self.limits = model, profile, limits
        self._planner = planner
        self._plans: dict[int, dict[Shapes, tuple[Plan, Bindings]]] = {}
        self._planning: list[int] = []
        self._handles: dict[tuple[str, str], int] | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a run, which may prepare as much as any other run."""
        self._planned = Meter(max(self.limits.work, DEFAULT_WORK))

    def plan(self, subgraph: int, shapes: Shapes) -> tuple[Plan, Bindings]:
        """Return the subgraph's plan for inputs of those shapes, and its late bindings."""
        known = self._plans.setdefault(subgraph, {})
        entry = known.get(shapes)
        if entry is None:
            if len(known) == _KEPT:
                del known[next(iter(known))]
            entry = known[shapes] = (self._make(subgraph, shapes), {})
        return entry

    @property
    def derived_memory(self) -> int:
        """Bytes that the kept plans have derived from constants."""
        return sum(plan.cost.derived_memory for plans in self._plans.values() for plan, _ in plans.values())

    def handles(self) -> dict[tuple[str, str], int]:
        """Return numbers of the model's resource variables by (container, name), in the order of their VAR_HANDLEs.

        Source: LiteRT 2.3 var_handle.cc Init.
        """
        if self._handles is None:
            self._handles = {}
            graphs = [view(self.model, index) for index in range(len(self.model.subgraphs))]
            for op in (op for graph in graphs for op in graph.ops if op.builtin == "VAR_HANDLE"):
                fields = op.options.fields if op.options else {}
                name = fields.get("container") or "", fields.get("shared_name") or ""
                self._handles.setdefault(name, len(self._handles))
        return self._handles

    def _make(self, subgraph: int, shapes: Shapes) -> Plan:
        graph = view(self.model, subgraph)
        if subgraph in self._planning:
            raise ModelError("a subgraph calls itself", got=subgraph)
        if len(self._planning) == _DEEPEST:
            raise LimitError(f"subgraphs call each other more than {_DEEPEST} levels deep")
        self._planned.spend(PREPARE_WORK + len(graph.ops) * PREPARE_STEP_WORK, f"preparing subgraph {subgraph}: ")
        inputs = graph.inputs
        if len(inputs) != len(shapes):
            raise ModelError("number of inputs of a called subgraph", expected=len(inputs), got=len(shapes))
        self._planning.append(subgraph)
        try:
            shape_of = dict(zip(inputs, shapes, strict=True))
            return self._planner(self.model, self.profile, subgraph, shape_of, self.limits, self)
        finally:
            self._planning.pop()


class SubgraphCalls:
    """The part of its program that one operator sees during preparation; it counts the called subgraphs."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.peak_memory = 0  # bytes, of the largest requested subgraph
        self.is_settled = True  # True if the plans of those subgraphs are settled
        self.promises: list[Exactness] = []  # of the results of those subgraphs
        self._least_works: list[int] = []  # of each

    @property
    def least_work(self) -> int:
        """Lower bound on the work of the operator's calls: one of the requested subgraphs runs once."""
        return min(self._least_works, default=0)

    def subgraph(self, index: int, shapes: Sequence[Shape]) -> Callee:
        """Bind a subgraph to the shapes of its inputs; everything that it cannot run is refused here."""
        plan = self._plan(index, tuple(shapes))
        return Callee(
            index=index,
            inputs=tuple(plan.operands[tensor] for tensor in plan.inputs),
            outputs=tuple(plan.operands[tensor] for tensor in plan.outputs),
            shapes=tuple(plan.operands[t].shape if plan.known[t] else None for t in plan.outputs),
        )

    def check(self, index: int) -> None:
        """Refuse operators that a subgraph cannot run for any shapes of its inputs."""
        graphs = self._program.model.subgraphs
        count = len(graphs[index].inputs) if 0 <= index < len(graphs) else 0
        self._plan(index, (None,) * count)

    def handle(self, container: str, name: str) -> int:
        """Return the number by which all subgraphs refer to the resource of that name."""
        return self._program.handles()[container, name]

    def operators(self, index: int) -> tuple[str, ...]:
        """Return the names of a subgraph's operators, in order."""
        return tuple(op.builtin for op in view(self._program.model, index).ops)

    def _plan(self, index: int, shapes: Shapes) -> Plan:
        plan, _ = self._program.plan(index, shapes)
        self.peak_memory = max(self.peak_memory, plan.cost.peak_memory)
        self.is_settled &= plan.cost.is_settled
        self.promises.extend(plan.promises.values())
        self._least_works.append(call_work(len(plan.steps)) + plan.cost.least_work)
        return plan


#: Bytes that may always be derived from constants: a few tables for each operator.
_DERIVED = 1 << 28


class Estimate:
    """Memory and work of one plan. `derived_before` are bytes that its program's other plans derived from constants."""

    def __init__(self, limits: Limits, derived_before: int) -> None:
        self._is_settled = True
        self._limits = limits
        self._budget, self._derived = MemoryBudget(limits.memory), Footprint()
        self._meter, self._least = Meter(limits.work), Meter(limits.work)
        self._derived_before = derived_before

    @property
    def room(self) -> int:
        """Bytes that are left at the present step."""
        return self._budget.room

    @property
    def live_bytes(self) -> int:
        """Bytes that are alive at the present step."""
        return self._budget.total

    def cost(self) -> PlanCost:
        """Return the sums so far."""
        return PlanCost(
            peak_memory=self._budget.peak,
            kept_memory=self._budget.kept + self._budget.beside,
            derived_memory=self._derived.bytes,
            work=self._meter.spent,
            least_work=self._least.spent,
            is_settled=self._is_settled,
        )

    def derive(self, values: Iterable[Array | None], place: str = "") -> None:
        """Count memory derived from the file's constants: converted constants, or a step's prepared data."""
        self._derived.add(*values)
        total, limit = self._derived_before + self._derived.bytes, max(self._limits.memory, _DERIVED)
        if total > limit:
            raise beyond(place, total, limit, "data derived from constants")

    def start(self, operand: Operand) -> None:
        """Count a tensor that exists before the first step."""
        self._budget.hold(operand, operand.shape)

    def call(self, step: Step, around: SubgraphCalls) -> None:
        """Count the work of a step, and the memory of the subgraphs that it calls."""
        self._budget.check(around.peak_memory, step.place, "the subgraphs that it calls")
        if step.prepared is None:
            self._is_settled = False
            return
        self._meter.spend(step.prepared.work or 0, step.place)
        self._least.spend((step.prepared.work or 0) + around.least_work, step.place)
        self.derive([step.prepared.data], step.place)
        self._is_settled &= (
            around.is_settled and None not in step.prepared.shapes and isinstance(step.prepared.scratch, int)
        )

    def make(self, step: Step, operand: Operand) -> None:
        """Count an output of a step."""
        self._budget.hold(operand, operand.shape, step.place)

    def finish(self, step: Step) -> None:
        """Count a step's working memory, then release tensors that are no longer read."""
        if step.prepared is not None and isinstance(step.prepared.scratch, int):
            self._budget.check(step.prepared.scratch, step.place, "its working memory")
        self._budget.release(step.last_uses)


#: Operators whose results depend on the shape of their operand, and not on its elements.
_OF_SHAPES = frozenset(("SHAPE", "RANK"))
#: Maximum bytes of a tensor that is computed in advance, or that such an operator reads.
_LARGEST = 1 << 12
#: Maximum passes of the innermost loop of such an operator, and maximum bytes of its working memory.
_MOST_WORK, _MOST_SCRATCH = 1 << 16, 1 << 16


class Folding:
    """Steps of one plan that can run in advance, and the values that they gave so far, by tensor.

    A step can run in advance if it reads shapes, constants and results of such steps alone, has no state, and all its
    tensors are small. It runs when `value` first needs it. If `is_off`, none can. `early` are the tensors whose shapes
    depend on such values: a runtime may know them only when it runs.
    """

    def __init__(self, graph: GraphView, operands: Sequence[Operand], is_off: bool = False) -> None:
        writes = Counter(tensor for op in graph.ops for tensor in op.outputs)
        given = {*graph.inputs, *(operand.index for operand in operands if operand.is_variable)}
        self._made_once = set() if is_off else {tensor for tensor, count in writes.items() if count == 1} - given
        self._constants = {o.index: o.value for o in operands if o.value is not None and _is_small(o.value)}
        self._makers: dict[int, Step] = {}
        self._values: dict[int, Array] = {}
        self.early: set[int] = set()

    def everything(self) -> Mapping[int, Array]:
        """Return all values that are certain, by tensor, also those that no operator needs to be prepared."""
        for tensor in tuple(self._makers):
            self.value(tensor)
        return self._values

    def add(self, step: Step) -> None:
        """Take the next step, which may make values that are certain."""
        prepared = step.prepared
        if prepared is None:
            return
        shapes = {step.inputs[position] for position in step.kernel.shape_operands if position < len(step.inputs)}
        if not self._values.keys().isdisjoint(shapes) or not self.early.isdisjoint(step.inputs):
            self.early.update(step.outputs)
        if step.kernel.session or not step.outputs or not self._made_once.issuperset(step.outputs):
            return
        reads_known = all(tensor in self._constants or tensor in self._makers for tensor in self._read(step))
        if reads_known and _is_bounded(step, prepared):
            self._makers.update(dict.fromkeys(step.outputs, step))

    def value(self, tensor: int) -> Array | None:
        """Return the value of a computed tensor; None if it is not certain, or if its computation fails."""
        needed, pending, is_certain = dict[int, Step](), [tensor], True
        while pending:
            read = pending.pop()
            step = self._makers.get(read)
            if read in self._values or read in self._constants:
                continue
            if step is None:
                is_certain = False  # its computation failed before
            elif step.index not in needed:
                needed[step.index] = step
                pending += self._read(step)
        steps = [needed[index] for index in sorted(needed)]
        done = next((n for n, step in enumerate(steps) if not self._run(step)), len(steps)) if is_certain else 0
        for step in steps[done:]:  # a run reports the error
            for output in step.outputs:
                self._makers.pop(output, None)
        return self._values.get(tensor)

    def _read(self, step: Step) -> list[int]:
        """Return the tensors whose elements a step reads."""
        return [] if step.op in _OF_SHAPES else [tensor for tensor in step.inputs if tensor >= 0]

    def _run(self, step: Step) -> bool:
        """Compute the results of a step; return False if its kernel refuses the values."""
        assert step.prepared is not None  # see `add`
        if step.op in _OF_SHAPES:
            arguments: list[Array | None] = [None] * len(step.inputs)
        else:
            arguments = [self._values.get(tensor, self._constants.get(tensor)) for tensor in step.inputs]
        try:
            with np.errstate(all="ignore"):
                results = evaluate(step.prepared, step, arguments)
        except TflqError:
            return False
        for tensor, result in zip(step.outputs, results, strict=True):
            self._values[tensor] = result.copy()
        return True


def _is_bounded(step: Step, prepared: Prepared) -> bool:
    """Return whether a step without updates has small results of known shapes, little work and little memory."""
    if prepared.updates or None in prepared.shapes or any(dtype.hasobject for dtype in step.dtypes):
        return False
    if not isinstance(prepared.scratch, int) or prepared.scratch > _MOST_SCRATCH:
        return False
    outputs = zip(step.node.outputs, prepared.shapes, strict=True)
    sizes = [size_of(operand, shape) for operand, shape in outputs if shape is not None]
    return max(sizes, default=0) <= _LARGEST and (prepared.work or 0) <= _MOST_WORK


def _is_small(value: Array) -> bool:
    return not value.dtype.hasobject and value.nbytes <= _LARGEST


#: Releases that want a buffer to hold the bytes of its tensor and no more.
_WHOLE_BUFFERS = tflite("tf-1.15", "tflite-2.14")


def check_loading(graph: GraphView, profile: Profile) -> None:
    """Refuse tensors whose quantization or buffer the profile's runtime refuses to load."""
    runtime = profile.runtime
    if runtime.library not in ("", SPEC):
        return
    whole = _WHOLE_BUFFERS.holds(runtime)
    for spec in graph.tensors:
        reason = _misfit(spec) or _misfit_of_bytes(graph.model, spec, whole)
        if reason:
            raise UnsupportedError("tensor", reason=f"{spec.name!r}: {reason}", profile=profile.name)


def _misfit_of_bytes(model: Model, spec: TensorSpec, whole: bool) -> str:
    """Return why a tensor's buffer does not fit its elements. Constants with too few bytes are refused when read."""
    more = surplus(model, spec)
    if more < 0 and stored(model, spec) is None:
        return f"its buffer has data of 0 bytes, not {-more}; only in buffer 0 this stands for no constant"
    return "the buffer holds more bytes than the tensor" if whole and more > 0 else ""


def _misfit(spec: TensorSpec) -> str:
    """Return why a tensor's scales do not fit its shape; empty if they do. A tensor without dimensions takes any."""
    q = spec.quantization
    if q is None or not len(q.scale) or (q.details is not None and q.details.table in SCALES_ELSEWHERE):
        return ""
    if q.quantized_dimension < 0 or (spec.shape and q.quantized_dimension >= len(spec.shape)):
        return f"quantized dimension {q.quantized_dimension} of {len(spec.shape)}"
    if len(q.scale) != 1 and spec.shape and len(q.scale) != spec.shape[q.quantized_dimension]:
        return f"{len(q.scale)} scales along a dimension of {spec.shape[q.quantized_dimension]}"
    return ""


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
    fused = fusions(graph, profile)
    uses = last_uses(graph, fused.instead)
    steps = []
    for op in graph.ops:
        instead = operands[fused.instead[op.index]] if op.index in fused.instead else None
        step = _step(program, operands, known, op, uses[op.index], estimate, instead, op.index in fused.chains, folding)
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
        cost=estimate.cost(),
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
    around = SubgraphCalls(program)
    node = replace(node_of(operands, op, around, estimate.room), is_in_chain=is_in_chain)
    kernel = _kernel(program.profile, node)
    if kernel.makes is not None:
        made = kernel.makes
        node = node.with_outputs(lambda output: replace(output, type=made))
    if instead is not None:
        node = reading_instead(node, kernel, instead)
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


def _check_calls(kernel: Kernel, node: Node, around: SubgraphCalls) -> None:
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
