"""A profile's results beside observed ones: end to end, or operator by operator on observed inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.errors import GoldenError
from tflq.inspection.difference import Difference, difference, merged
from tflq.interpreter import Plan, State, Trace, make_plan, run
from tflq.ir import Model, TensorSpec, TensorType
from tflq.kernels.exactness import EXACT, Exactness
from tflq.profiles import Profile
from tflq.surgery.results import last_makers, operator_name, results_of
from tflq.verification.dump import dumps_of_golden
from tflq.verification.golden import Golden, Observation, Stored
from tflq.verification.localization import REWRITTEN, UNKNOWN, Localizer, constants_after, require_shape
from tflq.verification.results import Located, OperatorResult, TensorResult, merged_samples

Array = NDArray[Any]
#: progress(what, done, total): called as work goes on.
Progress: TypeAlias = "Callable[[str, int, int], None]"
#: Samples of a stored golden that are in memory together.
_AT_ONCE = 8


# --- isolated --------------------------------------------------------------------------------------------------------


def isolated(model: Model, profile: Profile, golden: Golden, progress: Progress) -> tuple[OperatorResult, ...]:
    """Run every operator alone on the observed inputs, so that one operator's fault neither hides nor spreads.

    An operator that the profile cannot run, or whose inputs are not known, is not compared, with the reason. Variable
    tensors are not observed between operators: they carry on from this package's own operators.
    """
    count = len(model.subgraphs[0].operators)
    localizer = Localizer(model, profile, assumes=False, is_expected=True)
    step = _AT_ONCE if isinstance(golden.observations, Stored) else max(1, len(golden.observations))
    located: list[list[Located]] = [[] for _ in range(count)]
    for first in range(0, max(1, len(golden.observations)), step):
        rows = localizer.operators(dumps_of_golden(model, golden, samples=slice(first, first + step)), first)
        for index in range(count):
            progress(operator_name(model, index), index, count)
            located[index] += next(rows)
    return tuple(_operator(model, _merged(model, index, row)) for index, row in enumerate(located))


# --- cumulative ------------------------------------------------------------------------------------------------------


def cumulative(
    model: Model, profile: Profile, golden: Golden, progress: Progress
) -> tuple[tuple[OperatorResult, ...], tuple[TensorResult, ...]]:
    """Run the model end to end; compare every operator's results (where they are known) and the graph's outputs."""
    graph = model.subgraphs[0]
    makers = last_makers(model)
    rows: list[list[Located]] = [[] for _ in graph.operators]
    ends: dict[int, list[Difference]] = {}
    plans: dict[object, Plan] = {}
    promises: Mapping[int, Exactness] = {}
    for k, observation in enumerate(golden.observations):
        progress("running", k, len(golden.observations))
        plan = _plan(plans, model, profile, observation.inputs)
        state = State()
        trace = run(plan, dict(zip(graph.inputs, observation.inputs, strict=True)), state, keep_all=golden.tensors)
        promises = trace.promises
        for position, (tensor, expected) in enumerate(zip(graph.outputs, observation.outputs, strict=True)):
            if expected is not None:
                require_shape(plan, tensor, graph.tensors[tensor], expected)
                ends.setdefault(position, []).append(difference(expected, trace.values[tensor], k))
        for index in range(len(graph.operators)) if golden.tensors else ():
            rows[index].append(_of_run(plan, state, trace, observation, k, index, makers))
    operators = tuple(_operator(model, _merged(model, i, row)) for i, row in enumerate(rows)) if golden.tensors else ()
    outputs = tuple(
        _tensor(graph.tensors[t], t, ends.get(position, ()), UNKNOWN, promise=promises.get(t, EXACT))
        for position, t in enumerate(graph.outputs)
    )
    return operators, outputs


def _of_run(
    plan: Plan, state: State, trace: Trace, observation: Observation, sample: int, index: int, makers: Mapping[int, int]
) -> Located:
    """One operator of one run beside what was observed."""
    graph = plan.subgraph
    step = next((s for s in plan.steps if s.index == index), None)
    results = {
        t: trace.values[t]
        for t in results_of(plan.model, graph.operators[index])
        if t in trace.values and t not in graph.inputs
    }
    differences, notes = {}, {}
    for tensor, value in results.items():
        expected = observation.tensors.get(tensor)
        require_shape(plan, tensor, graph.tensors[tensor], expected)
        if makers[tensor] != index:
            notes[tensor] = REWRITTEN
        elif expected is None:
            notes[tensor] = UNKNOWN
        else:
            differences[tensor] = difference(expected, value, sample)
    return Located(
        index,
        operator_name(plan.model, index),
        differences,
        promises={t: trace.promise(t) for t in results},
        shapes={t: v.shape for t, v in results.items()},
        notes=notes,
        constants=None if step is None else constants_after(step.prepared, state, index),
    )


def _plan(plans: dict[object, Plan], model: Model, profile: Profile, sample: Sequence[Array]) -> Plan:
    """The plan for a sample's shapes; kept for the next one of equal shapes."""
    graph = model.subgraphs[0]
    if len(sample) != len(graph.inputs):
        raise GoldenError(f"expected {len(graph.inputs)} inputs a sample, got {len(sample)}")
    shapes = tuple(value.shape for value in sample)
    if shapes not in plans:
        plans[shapes] = make_plan(model, profile, input_shapes=dict(zip(graph.inputs, shapes, strict=True)))
    return plans[shapes]


# --- both ------------------------------------------------------------------------------------------------------------


def _merged(model: Model, index: int, row: Sequence[Located]) -> Located:
    """One operator over all samples, of which there may be none."""
    return merged_samples(row) if row else Located(index, operator_name(model, index), {})


def _operator(model: Model, located: Located) -> OperatorResult:
    graph = model.subgraphs[0]
    operator = graph.operators[located.index]
    tensors = [t for t in results_of(model, operator) if t in located.differences or t in located.notes]
    return OperatorResult(
        index=located.index,
        op=located.op,
        version=model.operator_codes[operator.opcode_index].version,
        tensors=tuple(
            _tensor(
                graph.tensors[t],
                t,
                [located.differences[t]] if t in located.differences else (),
                located.notes.get(t, ""),
                located.shapes.get(t),
                located.promises.get(t),
            )
            for t in tensors
        ),
        reason=located.failure,
        constants=located.constants,
    )


def _tensor(
    spec: TensorSpec,
    index: int,
    differences: Sequence[Difference],
    reason: str = "",
    shape: tuple[int, ...] | None = None,
    promise: Exactness | None = None,
) -> TensorResult:
    return TensorResult(
        index=index,
        name=spec.name or "",
        type=spec.type.label if isinstance(spec.type, TensorType) else str(spec.type),
        shape=spec.shape if shape is None else shape,
        difference=merged(differences) if differences else None,
        reason="" if differences else reason,
        promise=promise,
    )
