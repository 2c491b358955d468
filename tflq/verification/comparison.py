"""Hold a profile's results against observed ones: end to end, or operator by operator on observed inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.errors import (
    GoldenError,
    LimitError,
    ModelError,
    OperatorFailed,
    ShapeError,
    StateError,
    UndefinedResultError,
    UnsupportedError,
)
from tflq.inspection.constants import Constants, constants_of
from tflq.inspection.difference import Difference, difference, merged
from tflq.interpreter import Plan, State, make_plan, run
from tflq.ir import Model, TensorSpec, TensorType
from tflq.kernels.exactness import EXACT, Exactness
from tflq.kernels.kernel import Prepared
from tflq.profiles import Profile
from tflq.surgery.tap import single_operator
from tflq.verification.golden import Golden, Observation
from tflq.verification.results import OperatorResult, TensorResult

Array = NDArray[Any]
#: progress(what, done, total): called as work goes on.
Progress: TypeAlias = "Callable[[str, int, int], None]"

UNKNOWN = "the runtime holds no value for it"
REWRITTEN = "several operators write it, and only its last value is known"


@dataclass(slots=True, eq=False)
class _Found:
    """Differences gathered for one operator, by tensor index, over the samples."""

    differences: dict[int, list[Difference]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    promises: dict[int, Exactness] = field(default_factory=dict)
    reason: str = ""
    constants: Constants | None = None

    def compare(self, tensor: int, expected: Array | None, got: Array, sample: int, promise: Exactness) -> None:
        """Compare one tensor of one sample; None stands for a value that is not known."""
        self.shapes[tensor] = got.shape
        self.promises[tensor] = promise
        if expected is None:
            self.reasons.setdefault(tensor, UNKNOWN)
        else:
            self.differences.setdefault(tensor, []).append(difference(expected, got, sample))


# --- cumulative ------------------------------------------------------------------------------------------------------


def cumulative(
    model: Model, profile: Profile, golden: Golden, progress: Progress
) -> tuple[tuple[OperatorResult, ...], tuple[TensorResult, ...]]:
    """Run the model end to end; compare every operator's results (where they are known) and the graph's outputs."""
    graph = model.subgraphs[0]
    makers = last_makers(model)
    found = [_Found() for _ in graph.operators]
    ends: dict[int, list[Difference]] = {}
    missing: set[int] = set()
    plans: dict[object, Plan] = {}
    promises: Mapping[int, Exactness] = {}
    state = State()
    for k, observation in enumerate(golden.observations):
        progress("running", k, len(golden.observations))
        plan = _plan(plans, model, profile, observation.inputs)
        state = State()
        trace = run(plan, dict(zip(graph.inputs, observation.inputs, strict=True)), state, keep_all=golden.tensors)
        promises = trace.promises
        for position, (tensor, expected) in enumerate(zip(graph.outputs, observation.outputs, strict=True)):
            if expected is None:
                missing.add(position)
            else:
                require_shape(plan, tensor, graph.tensors[tensor], expected)
                ends.setdefault(position, []).append(difference(expected, trace.values[tensor], k))
        for index, operator in enumerate(graph.operators if golden.tensors else ()):
            for tensor in results_of(model, operator):
                if tensor in graph.inputs or tensor not in trace.values:
                    continue
                if makers[tensor] != index:
                    found[index].reasons[tensor] = REWRITTEN
                else:
                    got, expected = trace.values[tensor], observation.tensors.get(tensor)
                    require_shape(plan, tensor, graph.tensors[tensor], expected)
                    found[index].compare(tensor, expected, got, k, trace.promise(tensor))
    if golden.tensors:
        for step in plan.steps:
            found[step.index].constants = _constants(step.prepared, state, step.index)
    outputs = tuple(
        _tensor(
            graph.tensors[tensor],
            tensor,
            ends.get(position, ()),
            UNKNOWN if position in missing else "",
            promise=promises.get(tensor, EXACT),
        )
        for position, tensor in enumerate(graph.outputs)
    )
    return (_operators(model, found) if golden.tensors else ()), outputs


def _plan(plans: dict[object, Plan], model: Model, profile: Profile, sample: Sequence[Array]) -> Plan:
    """The plan for a sample's shapes; kept for the next one of equal shapes."""
    graph = model.subgraphs[0]
    if len(sample) != len(graph.inputs):
        raise GoldenError(f"expected {len(graph.inputs)} inputs a sample, got {len(sample)}")
    shapes = tuple(value.shape for value in sample)
    if shapes not in plans:
        plans[shapes] = make_plan(model, profile, input_shapes=dict(zip(graph.inputs, shapes, strict=True)))
    return plans[shapes]


# --- isolated --------------------------------------------------------------------------------------------------------


def isolated(model: Model, profile: Profile, golden: Golden, progress: Progress) -> tuple[OperatorResult, ...]:
    """Run every operator alone on the observed inputs, so that one operator's fault neither hides nor spreads.

    An operator that the profile cannot run, or whose inputs are not known, is not compared, with the reason. Variable
    tensors are not observed between operators: they carry on from this package's own operators.
    """
    graph = model.subgraphs[0]
    makers = last_makers(model)
    found = []
    variables: list[dict[int, Array]] = [{} for _ in golden.observations]
    for index in range(len(graph.operators)):
        progress(operator_name(model, index), index, len(graph.operators))
        alone, tensors = single_operator(model, index)
        operator = _Alone(model, index, alone, tensors, profile, makers)
        found.append(operator.compare(golden.observations, variables))
    return _operators(model, found)


@dataclass(slots=True, eq=False)
class _Alone:
    """One operator cut out of its model: `tensors[i]` is the original index of its tensor i."""

    model: Model
    index: int
    alone: Model
    tensors: tuple[int, ...]
    profile: Profile
    makers: Mapping[int, int]

    def compare(self, observations: Sequence[Observation], variables: list[dict[int, Array]]) -> _Found:
        """Run it on every sample; `variables` holds each sample's variable tensors and is brought up to date."""
        found = _Found()
        plans: dict[object, Plan] = {}
        for k, observation in enumerate(observations):
            try:
                sample = self._inputs(observation)
                if isinstance(sample, str):
                    found.reason = sample
                    continue
                plan = _plan(plans, self.alone, self.profile, sample)
                self._run(plan, sample, k, observation, variables[k], found)
            except (
                UnsupportedError,
                ModelError,
                OperatorFailed,
                UndefinedResultError,
                LimitError,
                StateError,
            ) as error:
                found.reason = str(error).removeprefix(f"operator 0 {operator_name(self.model, self.index)}: ")
        return found

    def _inputs(self, observation: Observation) -> list[Array] | str:
        """The observed values of its graph inputs, or why they are not known."""
        known = dict(zip(self.model.subgraphs[0].inputs, observation.inputs, strict=True))
        values = []
        for position in self.alone.subgraphs[0].inputs:
            tensor = self.tensors[position]
            value = known.get(tensor, observation.tensors.get(tensor))
            if value is None:
                return f"the runtime holds no value for its input tensor {tensor}"
            if self.makers.get(tensor, -1) >= self.index:
                return f"its input tensor {tensor} is overwritten later, and only the last value is known"
            values.append(value)
        return values

    def _run(
        self,
        plan: Plan,
        sample: Sequence[Array],
        k: int,
        observation: Observation,
        variables: dict[int, Array],
        found: _Found,
    ) -> None:
        state = State()
        for position, tensor in enumerate(self.tensors):
            if tensor in variables:
                state.variables[position] = variables[tensor]
        trace = run(plan, dict(zip(plan.inputs, sample, strict=True)), state, keep_all=True)
        for position, value in state.variables.items():
            variables[self.tensors[position]] = value
        graph = self.model.subgraphs[0]
        ends = dict(zip(graph.outputs, observation.outputs, strict=True))
        for tensor in results_of(self.model, graph.operators[self.index]):
            got = trace.values.get(self.tensors.index(tensor))
            if got is None or tensor in graph.inputs:
                continue
            if self.makers[tensor] != self.index:
                found.reasons[tensor] = REWRITTEN
            else:
                expected = observation.tensors.get(tensor)
                for seen in (expected, ends.get(tensor)):
                    require_shape(plan, self.tensors.index(tensor), graph.tensors[tensor], seen)
                found.compare(tensor, expected, got, k, plan.steps[0].promise)
        found.constants = _constants(plan.steps[0].prepared, state, 0)


def require_shape(plan: Plan, tensor: int, spec: TensorSpec, value: Array | None) -> None:
    """Raise a ShapeError where a value from outside has neither the shape that the file gives the tensor nor the one
    that it is planned to have, and the latter is certain.
    """
    if value is not None and plan.known[tensor]:
        shape = plan.operands[tensor].shape
        if value.shape not in (shape, spec.shape):
            raise ShapeError(spec.name or f"#{tensor}", shape, value.shape)


# --- both ------------------------------------------------------------------------------------------------------------


def results_of(model: Model, operator: Any) -> tuple[int, ...]:
    """Tensors that an operator makes, and variables that it may update."""
    tensors = model.subgraphs[0].tensors
    variables = (t for t in operator.inputs if t >= 0 and tensors[t].is_variable)
    return tuple(dict.fromkeys((*(t for t in operator.outputs if t >= 0), *variables)))


def last_makers(model: Model) -> dict[int, int]:
    """By tensor index, the last operator that makes it; for a variable, the last one that reads or updates it."""
    makers: dict[int, int] = {}
    for index, operator in enumerate(model.subgraphs[0].operators):
        for tensor in results_of(model, operator):
            makers[tensor] = index
    return makers


def _constants(prepared: Prepared | None, state: State, index: int) -> Constants | None:
    if prepared is None and index in state.bound:
        prepared = state.bound[index][1]
    return None if prepared is None else constants_of(prepared)


def _operators(model: Model, found: Sequence[_Found]) -> tuple[OperatorResult, ...]:
    graph = model.subgraphs[0]
    results = []
    for index, (operator, facts) in enumerate(zip(graph.operators, found, strict=True)):
        tensors = [t for t in results_of(model, operator) if t in facts.differences or t in facts.reasons]
        results.append(
            OperatorResult(
                index=index,
                op=operator_name(model, index),
                version=model.operator_codes[operator.opcode_index].version,
                tensors=tuple(
                    _tensor(
                        graph.tensors[t],
                        t,
                        facts.differences.get(t, ()),
                        facts.reasons.get(t, ""),
                        facts.shapes.get(t),
                        facts.promises.get(t),
                    )
                    for t in tensors
                ),
                reason=facts.reason,
                constants=facts.constants,
            )
        )
    return tuple(results)


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


def operator_name(model: Model, index: int) -> str:
    """An operator's name; a custom one's own."""
    code = model.operator_codes[model.subgraphs[0].operators[index].opcode_index]
    return code.custom_code or code.name if code.name == "CUSTOM" else code.name
