"""Locate differing operators: compute every operator, and compare it with a recording or a device's dump.

The comparison of one run of an operator, and comparisons that several profiles share.

Operators that reach variables and tables by handles: run with the resources of one interpreter.

A handle means something only next to the resources of the subgraph that made it, so these operators run as steps of
the whole subgraph's plan, on the values that the comparison gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.goldens.record import Unwritten, unwritten, without_unwritten
from tflq.comparison.inspection.difference import Difference, difference
from tflq.comparison.inspection.prepared import Constants, constants_of
from tflq.comparison.results import CompareMode, Located
from tflq.engine.api.many import Part
from tflq.engine.interpreter import Plan, State, make_plan
from tflq.engine.interpreter.execution import run_step
from tflq.engine.interpreter.fusions import fusions, makers_of, readers_left, unpack_tensors, unpackable_tensors
from tflq.engine.kernels.kernel import Prepared
from tflq.engine.profiles import Profile
from tflq.errors import ShapeError, TflqError
from tflq.model.ir import Model, OperatorView, TensorSpec, view
from tflq.model.ir.signatures import call, reach
from tflq.model.surgery.cut import OPAQUE, cut
from tflq.typing import Array

UNKNOWN = "the runtime holds no value for it"
REWRITTEN = "several operators write it, and only its last value is known"


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One run of an operator: its comparison, its results, and its variables afterwards, by original index."""

    located: Located
    results: Mapping[int, Array] = field(default_factory=dict)
    variables: Mapping[int, Array] = field(default_factory=dict)

    @property
    def apart(self) -> int:
        """The distance of all elements, by histograms, whose reach limits each element's share."""
        found = self.located.differences.values()
        return sum(d.differing + sum(abs(step) * count for step, count in d.histogram) for d in found)


class SharedResults:
    """Comparisons of one operator at a time that several profiles share: equal keys of `computes` mean equal bits."""

    def __init__(self, computes: Callable[[Part, Profile], Hashable]) -> None:
        self._computes = computes
        self._index = -1
        self._known: dict[Hashable, tuple[Part, Mapping[int, Array], Compared]] = {}
        self._keys: dict[tuple[int, int], tuple[Hashable, Part, Profile]] = {}

    def _key(self, part: Part, profile: Profile) -> Hashable:
        """Return the key of `computes`, which depends on the part's model and the profile, not on the inputs."""
        of = id(part.model), id(profile)
        if of not in self._keys:  # part and profile stay alive, so their identities stay valid
            self._keys[of] = self._computes(part, profile), part, profile
        return self._keys[of][0]

    def get(
        self, part: Part, profile: Profile, sample: int, variables: Mapping[int, Array], compare: Callable[[], Compared]
    ) -> Compared:
        """Return the earlier comparison of the same arrays, or a new one."""
        if part.index != self._index:
            self._index, self._known, self._keys = part.index, {}, {}
        arrays = (*sorted(part.inputs.items()), *sorted(variables.items()))
        key = self._key(part, profile), sample, tuple((t, id(value)) for t, value in arrays)
        if key not in self._known:
            self._known[key] = part, dict(variables), compare()  # the arrays stay alive, so their identities stay valid
        return self._known[key][2]


def readable(dump: Dump, makers: Mapping[int, int], index: int) -> dict[int, Array]:
    """Return the dumped values from before operator `index`.

    Tensors that it or a later operator writes are left out.
    """
    return {t: value for t, value in dump.tensors.items() if makers.get(t, -1) < index}


def require_shape(plan: Plan, tensor: int, spec: TensorSpec, value: Array | None) -> None:
    """Raise a ShapeError if a dumped value has neither the file's shape nor the planned one.

    It is raised only if the planned shape is certain.
    """
    if value is not None and plan.known[tensor]:
        shape = plan.operands[tensor].shape
        if value.shape not in (shape, spec.shape):
            raise ShapeError(spec.name or f"#{tensor}", shape, value.shape)


def constants_after(prepared: Prepared | None, state: State, index: int) -> Constants | None:
    """Return the prepared constants of step `index`, from before the run or during it."""
    if prepared is None and index in state.bound:
        prepared = state.bound[index][1]
    return None if prepared is None else constants_of(prepared)


@dataclass(slots=True, eq=False)
class StepMemory:
    """State that lives from step to step of a sequence: variable tensors by index, and the state with the resources."""

    variables: dict[int, Array] = field(default_factory=dict)
    state: State = field(default_factory=State)


@dataclass(eq=False)
class Handled:
    """The operators of a subgraph whose operands are handles, or that run such operators."""

    model: Model
    subgraph: int
    profile: Profile

    @cached_property
    def operators(self) -> frozenset[int]:
        """Their indices."""
        return frozenset(op.index for op in view(self.model, self.subgraph).ops if _reaches(self.model, op))

    def run(self, index: int, given: Mapping[int, Array], state: State) -> tuple[Plan, dict[int, Array]]:
        """Return the plan and the operator's results by tensor; `given` are its operands that are not constants."""
        plan = self._plan(given)
        step = next(step for step in plan.steps if step.index == index)
        values: list[Array | None] = list(plan.constants)
        for tensor, value in given.items():
            values[tensor] = value
        run_step(plan, step, state, values)
        return plan, {t: result for t in step.outputs if (result := values[t]) is not None}

    def _plan(self, given: Mapping[int, Array]) -> Plan:
        graph = view(self.model, self.subgraph)
        shapes = {t: value.shape for t, value in given.items() if t in graph.inputs}
        key = tuple(sorted(shapes.items()))
        if key not in self._plans:
            self._plans[key] = make_plan(self.model, self.profile, self.subgraph, shapes)
        return self._plans[key]

    @cached_property
    def _plans(self) -> dict[object, Plan]:
        return {}


def has_results(op: OperatorView) -> bool:
    """Return whether an operator has a result that can be read."""
    return any(op.graph.tensors[t].type not in OPAQUE for t in op.writes)


def _reaches(model: Model, op: OperatorView) -> bool:
    """Return whether an operator, or one of a subgraph that it runs, has a handle."""
    inner = (view(model, k).ops for k in reach(model, set(call(op.record))))
    return any(_has_handle(one) for one in (op, *(each for ops in inner for each in ops)))


def _has_handle(op: OperatorView) -> bool:
    specs = (*op.input_specs, *op.output_specs)
    return op.builtin == "CALL_ONCE" or any(spec is not None and spec.type in OPAQUE for spec in specs)


#: The later tensor whose bytes a dump holds in place of a tensor's, or None; `known` are earlier values.
Overwritten: TypeAlias = "Callable[[Dump, int, Mapping[int, Array]], int | None]"


@dataclass(slots=True, eq=False)
class _WalkedSample:
    """One dump during the walk. `computed` are the profile's values; `lost` are overwritten graph inputs.

    `unwritten` are tensors that the runtime never wrote: the computed ones are read instead.
    """

    dump: Dump
    computed: dict[int, Array]
    variables: dict[int, Array] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    state: State = field(default_factory=State)
    unwritten: set[int] = field(default_factory=set)

    def take(self, found: _Walked) -> None:
        """Take over what an operator computed, and what it showed about the dump."""
        self.computed.update(found.computed)
        self.variables.update(found.variables)
        self.lost = {t: other for t, other in self.lost.items() if t not in found.located.overwritten}
        self.dump = self.dump.without(found.located.overwritten)

    def left(self, part: Part, known: Container[int]) -> dict[int, Array]:
        """Return the final values of the part's variables that are not `known`: as dumped, else as computed."""
        specs = zip(part.tensors, part.graph.tensors, strict=True)
        values = {**self.variables, **self.dump.tensors}
        return {t: values[t] for t, spec in specs if spec.is_variable and t in values and t not in known}


@dataclass(frozen=True, slots=True, eq=False)
class _Walked:
    """A compared operator of a sample, with the values and variables that later operators read."""

    located: Located
    computed: Mapping[int, Array]
    variables: Mapping[int, Array]

    @property
    def agrees(self) -> bool:
        """True if results were compared, and all are equal."""
        return bool(self.located.differences) and not self.located.differs


@dataclass(frozen=True, slots=True, eq=False)
class Localizer:
    """The settings by which operators are compared.

    `assumes`: inputs that were not observed are computed from earlier tensors. `overwritten` recognizes reused memory.
    `is_expected`: the observed values are the expected ones, and the profile's results are compared with them. `parts`
    are the model's single operators, if they are at hand; `shared` holds results of other profiles with the same
    computation. `reads_constants`: the operators' prepared constants are kept. `carries`: variables may start with the
    values that the sample before left, as on a device without reset. `handled` runs operators that have handles.
    `unwritten` are tensors that the runtime may never have written; None: those of the profile.
    """

    model: Model
    profile: Profile
    mode: CompareMode = CompareMode.ISOLATED
    assumes: bool = True
    overwritten: Overwritten | None = None
    is_expected: bool = False
    parts: Sequence[Part] = ()
    shared: SharedResults | None = None
    reads_constants: bool = True
    carries: bool = False
    handled: Handled | None = None
    unwritten: Unwritten | None = None

    def operators(
        self,
        dumps: Sequence[Dump],
        first: int = 0,
        memories: Sequence[StepMemory] = (),
        kept: dict[int, dict[object, Plan]] | None = None,
    ) -> Iterator[tuple[Located, ...]]:
        """Yield each operator in order of execution, for every sample; `first` is the number of the first sample.

        `memories` hold what each sample begins with, and in the end what it leaves; without them, all samples are
        fresh. `kept` are the plans of earlier calls, by operator.

        If the profile cannot run an operator, it is replayed from the dump. A tensor that several operators write is
        compared after the last of them only. Variables continue with the profile's own values.

        Raises:
            ShapeError: A dumped tensor has neither the file's shape nor the planned one.
        """
        graph = view(self.model)
        makers = graph.last_writers
        gaps = unwritten(self.model, self.profile) if self.unwritten is None else self.unwritten
        samples = [
            self._begin(dump, memory) for dump, memory in zip(dumps, memories or map(_fresh, dumps), strict=True)
        ]
        fused = fusions(graph, self.profile).together
        constant = unpackable_tensors(graph, self.profile) - unpack_tensors(graph, self.profile)
        left = readers_left(graph, self.profile)
        for index in range(len(graph.ops)):
            lost = gaps.possible.union(constant, *(sample.unwritten for sample in samples))
            folded = frozenset() if index in left else lost & set(graph.op(index).inputs)
            joint = fused.get(index, ())
            is_shared = self.parts and not folded and not joint
            one = self.parts[index] if is_shared else alone(self.model, index, folded)
            whole = alone(self.model, index, folded, joint) if joint else one
            plans: dict[object, Plan] = {} if kept is None else kept.setdefault(index, {})
            before = [None, *samples[:-1]] if self.carries else [None] * len(samples)
            walked = enumerate(zip(samples, before, strict=True), first)
            yield tuple(
                self._settle(self._next(one, whole, joint, sample, last, k, makers, plans), sample, gaps)
                for k, (sample, last) in walked
            )

    def _begin(self, dump: Dump, memory: StepMemory) -> _WalkedSample:
        inputs = {t: dump.tensors[t] for t in view(self.model).inputs if t in dump.tensors}
        lost: dict[int, int] = {}
        for tensor in inputs if self.overwritten is not None else ():
            other = self._other(dump, tensor, {t: v for t, v in inputs.items() if t != tensor})
            lost |= {} if other is None else {tensor: other}
        known = {t: v for t, v in inputs.items() if t not in lost}
        return _WalkedSample(dump.without(lost), known, memory.variables, lost, memory.state)

    def _other(self, dump: Dump, tensor: int, known: Mapping[int, Array]) -> int | None:
        return None if self.overwritten is None else self.overwritten(dump, tensor, known)

    def _next(
        self,
        one: Part,
        whole: Part,
        joint: Sequence[int],
        sample: _WalkedSample,
        last: _WalkedSample | None,
        k: int,
        makers: Mapping[int, int],
        plans: dict[object, Plan],
    ) -> Located:
        """Return the comparison of an operator, or of the operators that the profile computes in one go with it.

        The sample takes it over. Several operators are compared together if the dump lacks a tensor between them, or if
        they then agree: a runtime that gives every tensor out may compute them either way. Sums of squares come first
        as one.
        """
        readings = [(one, plans)]
        if joint:
            between = {t for i in joint for t in view(self.model).op(i).outputs if t >= 0}
            has_all = between <= set(sample.dump.tensors)
            is_whole_first = has_all and one.index in fusions(view(self.model), self.profile).squares
            joined = whole, dict[object, Plan]()
            readings = [joined, *readings] if is_whole_first else [*readings, joined] if has_all else [joined]
        tried: list[_Walked] = []
        for part, own in readings:
            tried.append(self._locate(part, sample, last, k, makers, own))
            if tried[-1].agrees:
                break
        found = tried[-1] if tried[-1].agrees else tried[0]
        sample.take(found)
        return found.located

    def _locate(
        self,
        one: Part,
        sample: _WalkedSample,
        last: _WalkedSample | None,
        k: int,
        makers: Mapping[int, int],
        plans: dict[object, Plan],
    ) -> _Walked:
        """Compare an operator; the sample does not change, except for the state of operators that have handles."""
        operator = view(self.model).op(one.index)
        fed, assumed, missing = self._inputs(one, sample, makers)
        if self.handled is not None and one.index in self.handled.operators:
            compared = self._with_handles(self.handled, one, fed, sample, k, makers, missing)
        elif missing:
            compared = Compared(self._not_run(one, missing))
        else:
            part = replace(one, inputs=fed)
            compare = partial(self._shared, part, dump=sample.dump, k=k, makers=makers, plans=plans)
            compared = compare(sample.variables)
            left = {} if last is None or not compared.apart else last.left(part, sample.variables)
            if left:
                again = compare({**sample.variables, **left})
                if again.apart < compared.apart:
                    compared = replace(again, located=replace(again.located, began=left))
        located, computed = compared.located, compared.results
        if not computed:
            computed = {t: sample.dump.tensors[t] for t in operator.writes if t in sample.dump.tensors}
        overwritten = {t: sample.lost[t] for t in operator.inputs if t in sample.lost}
        apart = [t for t, d in located.differences.items() if not d.same]
        if self.overwritten is not None and apart:
            known = {**sample.computed, **computed}
            others = {t: self._other(sample.dump, t, known) for t in apart}
            overwritten |= {t: other for t, other in others.items() if other is not None}
        located = replace(
            located,
            differences={t: d for t, d in located.differences.items() if t not in overwritten},
            assumed=() if self.mode == CompareMode.CUMULATIVE or not compared.results else assumed,
            overwritten=overwritten,
        )
        return _Walked(located, computed, compared.variables)

    def _settle(self, located: Located, sample: _WalkedSample, gaps: Unwritten) -> Located:
        """Return an operator without results that the runtime never wrote; later ones read the computed values."""
        settled = without_unwritten(located, replace(gaps, seen=gaps.seen | sample.dump.unwritten))
        if settled.unwritten:
            sample.unwritten.update(settled.unwritten)
            sample.dump = sample.dump.without(settled.unwritten)
        return settled

    def _shared(self, part: Part, variables: Mapping[int, Array], **seen: Any) -> Compared:
        """Return another profile's comparison of the same computation, or a new one."""
        compare = partial(self._compared, part, variables, **seen)
        shared = self.shared
        return compare() if shared is None else shared.get(part, self.profile, seen["k"], variables, compare)

    def _compared(
        self,
        part: Part,
        variables: Mapping[int, Array],
        dump: Dump,
        k: int,
        makers: Mapping[int, int],
        plans: dict[object, Plan],
    ) -> Compared:
        graph = view(self.model)
        try:
            plan = _plan(plans, part, self.profile)
            state = part.state(variables)
            trace = part.traced(plan, state)
        except TflqError as error:
            return Compared(self._not_run(part, error.statement))
        values = part.values(trace)
        results = {t: values[t] for t in graph.op(part.index).writes if t in values}
        op = graph.op(part.index)
        differences, notes = self._differences(plan, part.tensors, op, results, dump, k, makers)
        located = Located(
            part.index,
            op.name,
            differences,
            promises=dict.fromkeys(results, plan.steps[-1].promise),
            shapes={t: v.shape for t, v in results.items()},
            notes=notes,
            constants=constants_after(plan.steps[-1].prepared, state, len(plan.steps) - 1)
            if self.reads_constants
            else None,
        )
        return Compared(located, results, {part.tensors[i]: value for i, value in state.variables.items()})

    def _with_handles(
        self,
        handled: Handled,
        one: Part,
        fed: Mapping[int, Array],
        sample: _WalkedSample,
        k: int,
        makers: Mapping[int, int],
        missing: str,
    ) -> Compared:
        """Return the comparison of an operator that has handles; they and the resources are the profile's own."""
        if missing:
            return Compared(self._not_run(one, missing))
        op = view(self.model).op(one.index)
        try:
            plan, results = handled.run(one.index, {one.tensors[i]: value for i, value in fed.items()}, sample.state)
        except TflqError as error:
            return Compared(self._not_run(one, error.statement))
        promise = next(step.promise for step in plan.steps if step.index == one.index)
        differences, notes = self._differences(plan, range(len(plan.operands)), op, results, sample.dump, k, makers)
        located = Located(
            one.index,
            op.name,
            differences,
            promises=dict.fromkeys(results, promise),
            shapes={t: v.shape for t, v in results.items()},
            notes=notes,
            silent=not has_results(op),
        )
        return Compared(located, results)

    def _differences(
        self,
        plan: Plan,
        tensors: Sequence[int],
        op: OperatorView,
        results: Mapping[int, Array],
        dump: Dump,
        k: int,
        makers: Mapping[int, int],
    ) -> tuple[dict[int, Difference], dict[int, str]]:
        """Return the differences of an operator's results, and why others have none.

        `tensors` are the original indices of the plan's tensors.
        """
        graph = op.graph
        differences: dict[int, Difference] = {}
        notes = {}
        for tensor in (t for t in results if t not in graph.inputs and graph.tensors[t].type not in OPAQUE):
            dumped = dump.tensors.get(tensor)
            if makers[tensor] != op.index:
                notes[tensor] = REWRITTEN
            elif dumped is None:
                notes[tensor] = UNKNOWN
            else:
                require_shape(plan, tensors.index(tensor), graph.tensors[tensor], dumped)
                differences[tensor] = self._difference(results[tensor], dumped, k)
        return differences, notes

    def _not_run(self, part: Part, reason: str) -> Located:
        return Located(part.index, view(self.model).op(part.index).name, {}, failure=reason)

    def _difference(self, computed: Array, dumped: Array, sample: int) -> Difference:
        return difference(dumped, computed, sample) if self.is_expected else difference(computed, dumped, sample)

    def _inputs(
        self, one: Part, sample: _WalkedSample, makers: Mapping[int, int]
    ) -> tuple[dict[int, Array], tuple[int, ...], str]:
        """Return the part's inputs by index, the original indices of computed ones, and why an input is missing."""
        observed = readable(sample.dump, makers, one.index)
        sources = [observed, *([sample.computed] if self.assumes else [])]
        if self.mode == CompareMode.CUMULATIVE:
            sources.reverse()
        fed, assumed, graph = {}, [], view(self.model)
        for position in one.graph.inputs:
            tensor = one.tensors[position]
            source = next((values for values in sources if tensor in values), None)
            if source is None and tensor in sample.unwritten:
                source = sample.computed
            if source is None and self.handled is not None and graph.tensors[tensor].type in OPAQUE:
                source = sample.computed if tensor in sample.computed else None  # no runtime shows a handle
            if source is None:
                return {}, (), self._missing(sample.dump, tensor)
            fed[position] = source[tensor]
            is_given = source is observed or tensor in sample.unwritten
            if not is_given and graph.tensors[tensor].type not in OPAQUE:
                assumed.append(tensor)
        return fed, tuple(assumed), ""

    def _missing(self, dump: Dump, tensor: int) -> str:
        if not self.assumes and tensor in dump.tensors:
            return f"its input tensor {tensor} is overwritten later, and only the last value is known"
        if not self.assumes:
            return f"the runtime holds no value for its input tensor {tensor}"
        return (
            f"its input tensor {tensor} is neither in the dump nor can it be computed: "
            "--inputs (inputs=) gives the device's inputs"
        )


def _fresh(_dump: Dump) -> StepMemory:
    return StepMemory()


def alone(model: Model, index: int, folded: Iterable[int] = (), joint: Iterable[int] = ()) -> Part:
    """Return one operator cut out of a model, still without inputs.

    The operators that make the tensors `folded` of constants, and those in `joint`, are part of it.
    """
    return Part((index,), *cut(model, (*makers_of(view(model), folded), *joint, index)))


def _plan(plans: dict[object, Plan], part: Part, profile: Profile) -> Plan:
    """Return the plan for the cut and its inputs' shapes; kept for the next sample of equal shapes."""
    key = (part.tensors, *(value.shape for value in part.inputs.values()))
    if key not in plans:
        plans[key] = part.plan(profile)
    return plans[key]
