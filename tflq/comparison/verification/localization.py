"""Locate differing operators: compute every operator, and compare it with a recording or a device's dump."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from tflq.comparison.inspection.difference import Difference, difference
from tflq.comparison.verification.compared import (
    REWRITTEN,
    UNKNOWN,
    Compared,
    Shared,
    constants_after,
    readable,
    require_shape,
)
from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.handles import Handled, Memory, has_results
from tflq.comparison.verification.results import Located, Mode
from tflq.comparison.verification.unwritten import Unwritten, unwritten, without_unwritten
from tflq.engine.api.part import Part
from tflq.engine.interpreter import Plan, State
from tflq.engine.interpreter.chains import together
from tflq.engine.interpreter.squares import squaring
from tflq.engine.interpreter.unpacking import makers_of, readers_left, unpack_tensors, unpackable_tensors
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, OperatorView, view
from tflq.model.surgery.cut import OPAQUE, cut
from tflq.typing import Array

#: The later tensor whose bytes a dump holds in place of a tensor's, or None; `known` are earlier values.
Overwritten: TypeAlias = "Callable[[Dump, int, Mapping[int, Array]], int | None]"


@dataclass(slots=True, eq=False)
class _Sample:
    """One dump during the walk. `computed` are the profile's values; `lost` are overwritten graph inputs.

    `unwritten` are tensors that the runtime never wrote: the computed ones are read instead.
    """

    dump: Dump
    computed: dict[int, Array]
    variables: dict[int, Array] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    state: State = field(default_factory=State)
    unwritten: set[int] = field(default_factory=set)

    def copy(self) -> _Sample:
        """Return a sample that changes by itself, except for the state of operators that have handles."""
        return replace(
            self,
            computed=dict(self.computed),
            variables=dict(self.variables),
            lost=dict(self.lost),
            unwritten=set(self.unwritten),
        )

    def take(self, other: _Sample) -> None:
        """Take over what a copy has become."""
        self.dump, self.computed, self.lost = other.dump, other.computed, other.lost
        self.variables.update(other.variables)

    def left(self, part: Part, known: Container[int]) -> dict[int, Array]:
        """Return the final values of the part's variables that are not `known`: as dumped, else as computed."""
        specs = zip(part.tensors, part.graph.tensors, strict=True)
        values = {**self.variables, **self.dump.tensors}
        return {t: values[t] for t, spec in specs if spec.is_variable and t in values and t not in known}


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
    mode: Mode = Mode.ISOLATED
    assumes: bool = True
    overwritten: Overwritten | None = None
    is_expected: bool = False
    parts: Sequence[Part] = ()
    shared: Shared | None = None
    reads_constants: bool = True
    carries: bool = False
    handled: Handled | None = None
    unwritten: Unwritten | None = None

    def operators(
        self,
        dumps: Sequence[Dump],
        first: int = 0,
        memories: Sequence[Memory] = (),
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
        fused = together(graph, self.profile)
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
                self._settle(self._nearest(one, whole, joint, sample, last, k, makers, plans), sample, gaps)
                for k, (sample, last) in walked
            )

    def _begin(self, dump: Dump, memory: Memory) -> _Sample:
        inputs = {t: dump.tensors[t] for t in view(self.model).inputs if t in dump.tensors}
        lost: dict[int, int] = {}
        for tensor in inputs if self.overwritten is not None else ():
            other = self._other(dump, tensor, {t: v for t, v in inputs.items() if t != tensor})
            lost |= {} if other is None else {tensor: other}
        known = {t: v for t, v in inputs.items() if t not in lost}
        return _Sample(dump.without(lost), known, memory.variables, lost, memory.state)

    def _other(self, dump: Dump, tensor: int, known: Mapping[int, Array]) -> int | None:
        return None if self.overwritten is None else self.overwritten(dump, tensor, known)

    def _nearest(
        self,
        one: Part,
        whole: Part,
        joint: Sequence[int],
        sample: _Sample,
        last: _Sample | None,
        k: int,
        makers: Mapping[int, int],
        plans: dict[object, Plan],
    ) -> Located:
        """Return the comparison of an operator, or of the operators that the profile computes in one go with it.

        These are compared together if the dump lacks a tensor between them, or if they then agree: a runtime that
        gives every tensor out may compute them either way. Sums of squares come first as one.
        """
        if not joint:
            return self._locate(one, sample, last, k, makers, plans)
        between = {t for i in joint for t in view(self.model).op(i).outputs if t >= 0}
        parts = [(whole, dict[object, Plan]())]
        if between <= set(sample.dump.tensors):
            sums = squaring(view(self.model), one.index, self.profile)
            parts.insert(1 if sums else 0, (one, plans))
        trials = []
        for part, own in parts:
            trial = sample.copy()
            trials.append((self._locate(part, trial, last, k, makers, own), trial))
            if not trials[-1][0].differs and trials[-1][0].differences:
                break
        located, kept = next((t for t in trials if t[0].differences and not t[0].differs), trials[0])
        sample.take(kept)
        return located

    def _locate(
        self,
        one: Part,
        sample: _Sample,
        last: _Sample | None,
        k: int,
        makers: Mapping[int, int],
        plans: dict[object, Plan],
    ) -> Located:
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
        if not compared.results:
            results = operator.writes
            sample.computed.update({t: sample.dump.tensors[t] for t in results if t in sample.dump.tensors})
        sample.computed.update(compared.results)
        sample.variables.update(compared.variables)
        located = compared.located
        overwritten = {t: sample.lost.pop(t) for t in operator.inputs if t in sample.lost}
        if self.overwritten is not None:
            others = {
                t: self._other(sample.dump, t, sample.computed) for t, d in located.differences.items() if not d.same
            }
            overwritten |= {t: other for t, other in others.items() if other is not None}
        sample.dump = sample.dump.without(overwritten)
        return replace(
            located,
            differences={t: d for t, d in located.differences.items() if t not in overwritten},
            assumed=() if self.mode == Mode.CUMULATIVE or not compared.results else assumed,
            overwritten=overwritten,
        )

    def _settle(self, located: Located, sample: _Sample, gaps: Unwritten) -> Located:
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
        sample: _Sample,
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
        self, one: Part, sample: _Sample, makers: Mapping[int, int]
    ) -> tuple[dict[int, Array], tuple[int, ...], str]:
        """Return the part's inputs by index, the original indices of computed ones, and why an input is missing."""
        observed = readable(sample.dump, makers, one.index)
        sources = [observed, *([sample.computed] if self.assumes else [])]
        if self.mode == Mode.CUMULATIVE:
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


def _fresh(_dump: Dump) -> Memory:
    return Memory()


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
