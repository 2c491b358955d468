"""Part of a model, run under a profile with given values; results have the original tensor indices."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tflq.engine.interpreter import Plan, State, Trace, make_plan, run
from tflq.engine.interpreter.limits import current_limits
from tflq.engine.profiles import Profile
from tflq.errors import InputError
from tflq.model.ir import GraphView, Model, OperatorView, view, with_graph
from tflq.model.surgery.cut import cut
from tflq.model.surgery.edit import with_constant
from tflq.typing import Array

#: Plans that a part keeps: few, since each may hold prepared constants.
_KEPT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some operators of a model, cut out, with the values of their inputs.

    `tensors[i]` is the original index of tensor i of `model`. `inputs` have the index in `model`. `got` are the known
    results of a device or a runtime, by the original index. So are `variables`, their initial values if they differ
    from the model's. If `runs` is a list, it collects plan and inputs of every run. `plans` are the last plans, which
    parts that differ only in values share.
    """

    operators: tuple[int, ...]  # original indices, in order of execution
    model: Model
    tensors: tuple[int, ...]
    inputs: Mapping[int, Array] = field(default_factory=dict)
    got: Mapping[int, Array] = field(default_factory=dict)
    variables: Mapping[int, Array] = field(default_factory=dict)
    runs: list[tuple[Plan, Mapping[int, Array]]] | None = None
    plans: dict[Hashable, Plan] = field(default_factory=dict, repr=False)

    @property
    def index(self) -> int:
        """The original index of its first operator."""
        return self.operators[0]

    @property
    def graph(self) -> GraphView:
        """The view of its model."""
        return view(self.model)

    @property
    def op(self) -> OperatorView:
        """Its first operator."""
        return self.graph.op(0)

    def plan(self, profile: Profile, model: Model | None = None) -> Plan:
        """Bind its model, or a changed form of it, under a profile for the shapes of its inputs."""
        shapes, chosen = {tensor: value.shape for tensor, value in self.inputs.items()}, model or self.model
        # A kept plan keeps its model and profile alive, so their identities stay valid.
        key = id(chosen), id(profile), tuple(shapes.items()), current_limits()
        known = self.plans.pop(key) if key in self.plans else None
        self.plans[key] = known or make_plan(chosen, profile, input_shapes=shapes, is_part=True)
        for oldest in [*self.plans][:-_KEPT]:
            del self.plans[oldest]
        return self.plans[key]

    def run(self, plan: Plan) -> dict[int, Array]:
        """Return values of all tensors, including inputs."""
        return self.values(self.traced(plan, self.state(self.variables)))

    def traced(self, plan: Plan, state: State) -> Trace:
        """Run, keeping every tensor; indices are those of its own model."""
        if self.runs is not None:
            self.runs.append((plan, self.inputs))
        return run(plan, self.inputs, state, keep_all=True)

    def fixing(self, tensors: Collection[int]) -> Part:
        """Return the part with some inputs, by original index, as constants of its model."""
        model, fixed = self.model, [i for i in self.inputs if self.tensors[i] in tensors]
        for i in fixed:
            model = with_constant(model, i, self.inputs[i])
        if not fixed:
            return self
        record = view(model).record
        record = replace(record, inputs=tuple(i for i in record.inputs if i not in fixed))
        inputs = {i: value for i, value in self.inputs.items() if i not in fixed}
        return replace(self, model=with_graph(model, record), inputs=inputs)

    def values(self, trace: Trace) -> dict[int, Array]:
        """Return a trace's tensors by original index."""
        return {self.tensors[i]: value for i, value in trace.values.items()}

    def state(self, variables: Mapping[int, Array]) -> State:
        """Return a state whose variables have these values, by original index; others are at their initial ones."""
        return State(variables={i: variables[t] for i, t in enumerate(self.tensors) if t in variables})


def reads(model: Model, operators: Sequence[int]) -> tuple[int, ...]:
    """Return original indices of the tensors that some operators read from outside."""
    part, tensors = cut(model, operators)
    return tuple(tensors[i] for i in view(part).inputs)


def part_of(model: Model, operators: Sequence[int], values: Mapping[int, Array]) -> Part:
    """Return some operators of the first subgraph, with inputs from `values` by original index.

    Raises:
        InputError: A value that they need is missing.
    """
    part, tensors = cut(model, operators)
    needed = view(part).inputs
    missing = sorted(tensors[i] for i in needed if tensors[i] not in values)
    if missing:
        raise InputError(f"tensors that are neither in the dump nor can be computed are needed: {missing}")
    inputs = {i: values[tensors[i]] for i in needed}
    return Part(tuple(sorted(set(operators))), part, tensors, inputs)
