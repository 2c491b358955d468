"""Where a dump parts from a profile: every operator computed and held against what the dump has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from tflq.diagnosis.dump import Dump
from tflq.diagnosis.reuse import overwritten_by
from tflq.errors import InputError, TflqError
from tflq.inspection.difference import Difference, difference
from tflq.interpreter import Plan, State, make_plan, run
from tflq.ir import Model
from tflq.profiles import Profile
from tflq.surgery.tap import single_operator
from tflq.verification.comparison import last_makers, operator_name, require_shape, results_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """One operator. `differences` are got (the dump) - expected (the profile), by tensor index.

    `assumed` are inputs that the dump lacks, which were computed; `reason` says why nothing was compared.
    `overwritten` are results (of the operator that reads it first: a graph input) whose memory had been used again
    when the dump was taken, and the later tensor that lay there: they are neither compared nor read.
    """

    index: int
    op: str
    differences: Mapping[int, Difference]
    assumed: tuple[int, ...] = ()
    reason: str = ""
    overwritten: Mapping[int, int] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether any element does."""
        return any(not d.same for d in self.differences.values())


@dataclass(frozen=True, slots=True, eq=False)
class Alone:
    """One operator cut out of its model, with the values of its graph inputs and what a device made of them."""

    index: int
    model: Model
    tensors: tuple[int, ...]  # tensors[i] is the original index of its tensor i
    inputs: Mapping[int, Array]  # by its own tensor index
    got: Mapping[int, Array]  # by original tensor index

    def plan(self, profile: Profile, model: Model | None = None) -> Plan:
        """It, or a changed form of it, bound under a profile for its inputs' shapes."""
        shapes = {tensor: value.shape for tensor, value in self.inputs.items()}
        return make_plan(model or self.model, profile, input_shapes=shapes)

    def run(self, plan: Plan, variables: Mapping[int, Array] | None = None) -> dict[int, Array]:
        """Values by original tensor index; `variables`, by original index too, are where it starts."""
        state = State()
        known = variables or {}
        state.variables.update({i: known[t] for i, t in enumerate(self.tensors) if t in known})
        trace = run(plan, self.inputs, state, keep_all=True)
        return {self.tensors[i]: value for i, value in trace.values.items()}


def localize(model: Model, dump: Dump, profile: Profile, mode: str = "isolated") -> tuple[Located, ...]:
    """Compute every operator: on the dump's own inputs where it has them ("isolated"), or end to end ("cumulative").

    An operator that the profile cannot run is replayed from the dump. A tensor that several operators write is compared
    after the last of them only.
    """
    return tuple(located(model, dump, profile, mode))


def located(model: Model, dump: Dump, profile: Profile, mode: str = "isolated") -> Iterator[Located]:
    """The same, an operator at a time."""
    graph = model.subgraphs[0]
    makers = last_makers(model)
    variables = {i for i, spec in enumerate(graph.tensors) if spec.is_variable}
    lost = _lost_inputs(model, dump, profile)
    dump = dump.without(lost)
    computed: dict[int, Array] = {t: dump.tensors[t] for t in graph.inputs if t in dump.tensors}
    for index, operator in enumerate(graph.operators):
        results = results_of(model, operator)
        name = operator_name(model, index)
        prefer = computed if mode == "cumulative" else _readable(dump, makers, index)
        rest = _readable(dump, makers, index) if mode == "cumulative" else computed
        made: dict[int, Array] = {}
        plan: Plan | None = None
        assumed: tuple[int, ...] = ()
        reason = ""
        try:
            alone, assumed = _alone(model, index, prefer, rest)
            carried = {t: computed[t] for t in variables if t in computed}
            plan = alone.plan(profile)
            values = alone.run(plan, carried)
            made = {t: values[t] for t in results if t in values}
        except TflqError as error:
            reason = str(error).removeprefix(f"operator 0 {name}: ")
            computed.update({t: dump.tensors[t] for t in results if t in dump.tensors})
        computed.update(made)
        for tensor in made.keys() & dump.tensors.keys():
            if plan is not None and makers[tensor] == index:
                require_shape(plan, alone.tensors.index(tensor), graph.tensors[tensor], dump.tensors[tensor])
        differences = {
            t: difference(value, dump.tensors[t])
            for t, value in made.items()
            if t in dump.tensors and makers[t] == index and t not in graph.inputs
        }
        overwritten = {t: lost.pop(t) for t in operator.inputs if t in lost}
        overwritten |= _overwritten(model, dump, profile, (t for t, d in differences.items() if not d.same), computed)
        differences = {t: d for t, d in differences.items() if t not in overwritten}
        dump = dump.without(overwritten)
        if overwritten:
            reason = "; ".join(f"the dump holds tensor {o} in the place of tensor {t}" for t, o in overwritten.items())
        elif not differences and not reason:
            reason = "the dump does not hold its results"
        yield Located(index, name, differences, () if mode == "cumulative" else assumed, reason, overwritten)


def _overwritten(
    model: Model, dump: Dump, profile: Profile, tensors: Iterable[int], known: Mapping[int, Array]
) -> dict[int, int]:
    """Which of the tensors had a later one in their place when the dump was taken, and which one."""
    found = {t: overwritten_by(model, dump, profile, t, known) for t in tensors}
    return {t: other for t, other in found.items() if other is not None}


def _lost_inputs(model: Model, dump: Dump, profile: Profile) -> dict[int, int]:
    """Graph inputs whose place a later tensor had taken when the dump was taken."""
    known = {t: v for t, v in dump.tensors.items() if t in model.subgraphs[0].inputs}
    found = {t: overwritten_by(model, dump, profile, t, {i: v for i, v in known.items() if i != t}) for t in known}
    return {t: other for t, other in found.items() if other is not None}


def trusted(dump: Dump, found: Iterable[Located]) -> Dump:
    """The dump without what was overwritten."""
    return dump.without(t for o in found for t in o.overwritten)


def operator_alone(model: Model, dump: Dump, index: int, profile: Profile) -> Alone:
    """Operator `index` on the dump's inputs; those that it lacks are computed from what comes before."""
    graph, makers = model.subgraphs[0], last_makers(model)
    readable = _readable(dump, makers, index)
    one, tensors = single_operator(model, index)
    needed = {tensors[i] for i in one.subgraphs[0].inputs}
    if not needed <= set(readable):
        before = _computed(model, dump, index, profile)
        readable = {**before, **readable}
    alone, _ = _alone(model, index, readable, {})
    got = {t: dump.tensors[t] for t in results_of(model, graph.operators[index]) if t in dump.tensors}
    return replace(alone, got={t: v for t, v in got.items() if makers[t] == index})


def _readable(dump: Dump, makers: Mapping[int, int], index: int) -> dict[int, Array]:
    """What the dump says of the time before operator `index`: nothing of tensors that it or a later one writes."""
    return {t: value for t, value in dump.tensors.items() if makers.get(t, -1) < index}


def _alone(
    model: Model, index: int, prefer: Mapping[int, Array], rest: Mapping[int, Array]
) -> tuple[Alone, tuple[int, ...]]:
    one, tensors = single_operator(model, index)
    inputs = {}
    assumed = []
    for position in one.subgraphs[0].inputs:
        tensor = tensors[position]
        if tensor not in prefer and tensor not in rest:
            raise InputError(f"its input tensor {tensor} is neither in the dump nor can it be computed")
        inputs[position] = prefer[tensor] if tensor in prefer else rest[tensor]
        if tensor not in prefer:
            assumed.append(tensor)
    return Alone(index, one, tensors, inputs, {}), tuple(assumed)


def _computed(model: Model, dump: Dump, before: int, profile: Profile) -> dict[int, Array]:
    """The results of all operators before one, isolated where the dump allows it."""
    makers = last_makers(model)
    values: dict[int, Array] = {}
    for index in range(before):
        try:
            alone, _ = _alone(model, index, _readable(dump, makers, index), values)
            made = alone.run(alone.plan(profile))
        except TflqError:
            continue
        values.update({t: made[t] for t in results_of(model, model.subgraphs[0].operators[index]) if t in made})
    return values
