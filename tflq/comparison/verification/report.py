"""The outcome of a verification as one value, and the outputs of the graph.

The outcome of a verification as one frozen value: the comparisons, the differences, and the verdict.

The outputs of the graph: recorded values compared with those of the operators, or of the whole model.

A recording with all tensors holds an output twice: as an output of the model, and as the result that was read from its
operator. If both are equal, the operator's comparison covers the output. If they differ, or if no operator makes the
output (it is an input or a constant), the whole model is run and the output is compared with that run.

Report observed outputs that cannot reveal a difference: constant, saturated or NaN.

The changes between releases that explain why two runtimes differ on a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.comparison.goldens.golden import Golden, Observation
from tflq.comparison.goldens.record import Unwritten
from tflq.comparison.inspection.difference import Difference, difference, digest_of, merge
from tflq.comparison.results import (
    NOT_WRITTEN,
    Apart,
    CompareMode,
    GoldenCoverage,
    InputFacts,
    Located,
    OperatorResult,
    Status,
    TensorResult,
    Verdict,
    verdict_of,
)
from tflq.comparison.verification.localization import UNKNOWN, require_shape
from tflq.engine.api.files import ModelFacts
from tflq.engine.interpreter import Plan, State, Trace, make_plan, run
from tflq.engine.kernels.kernel import EXACT, Exactness
from tflq.engine.profiles import Profile
from tflq.engine.profiles.history import ReleaseChange, changes_between
from tflq.engine.runtimes import Description
from tflq.errors import GoldenError, TflqError
from tflq.model.ir import Model, TensorSpec, TensorType, view
from tflq.model.ir.signatures import place_in
from tflq.texts import Statement, Tabular, display_by
from tflq.typing import Array


@display_by("verify:verify_card", "verify_document", "operators")
@dataclass(frozen=True, slots=True, eq=False)
class Verification(Tabular):
    """The outcome of one verification.

    `operators` are in execution order; empty for a golden that holds outputs only. `outputs` are the graph's outputs,
    end to end or as an operator's recorded results. `operator_count` is the number of the operators of the subgraphs
    that were to be compared, `apart` describes others. `golden` is the path of the golden file, if any. `signatures`
    names those of a model with several, in the file's order; `others` are those that were not asked for.

    `own` is the profile of the golden's or runtime's own release, if the compared one differs and `own` reproduces all
    bits; `changes` are what releases changed between the two in the operators that differ. `accepted` is True if
    a baseline accepts everything that differs or was not compared, and None without a baseline.
    """

    model: ModelFacts
    profile: str
    against: Description | Mapping[str, object]
    golden: str
    mode: CompareMode
    inputs: InputFacts
    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]
    operator_count: int = 0
    apart: tuple[Apart, ...] = ()
    signatures: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    own: str = ""
    changes: tuple[ReleaseChange, ...] = ()
    accepted: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict: same, close, differs, explained, accepted, incomplete, or nothing compared."""
        found = self._compared
        if self.accepted and found in (Verdict.DIFFERS, Verdict.INCOMPLETE):
            return Verdict.ACCEPTED
        is_explained = self.own and found == Verdict.DIFFERS and self.accepted is None
        return Verdict.EXPLAINED if is_explained else found

    @property
    def _compared(self) -> Verdict:
        statuses = {o.status for o in self.operators} | {t.status for t in self.outputs}
        is_part_unseen = any(not t.is_seen for t in self.outputs) or any(not one.callers for one in self.apart)
        return verdict_of(statuses | ({Status.NOT_COMPARED} if is_part_unseen else set()), self.compared)

    @property
    def rest(self) -> Verdict:
        """The verdict if everything that differs or was not compared had been as expected."""
        statuses = {o.status for o in self.operators} | {t.status for t in self.outputs}
        return verdict_of(statuses & {Status.CLOSE}, self.compared)

    def of(self, signature: str) -> Verification:
        """Return the report of one signature alone; subgraphs that none runs are left out."""
        return replace(
            self,
            operators=tuple(o for o in self.operators if o.signature == signature),
            outputs=tuple(t for t in self.outputs if t.signature == signature),
            operator_count=sum(o.signature == signature for o in self.operators),
            apart=tuple(one for one in self.apart if any(name == signature for name, _ in one.callers)),
            signatures=(signature,),
            others=(),
        )

    @property
    def coverage(self) -> GoldenCoverage:
        """The number of compared parts, the number of all, and a list of missing ones."""
        whole = sum(o.is_whole for o in self.operators), max(self.operator_count, len(self.operators))
        outputs = sum(t.is_whole for t in self.outputs), len(self.outputs)
        inside = [
            f"{one}, {_callers(one)}, as far as these inputs run them" for one in self.apart if self._reaches(one)
        ]
        silent = [o for o in self.operators if o.silent and not o.reason]
        if silent:
            inside.append(
                f"{len(silent)} operators without results, such as {silent[0].op}: by what reads their effects"
            )
        return GoldenCoverage(whole, outputs, tuple(self._missing()), tuple(inside), tuple(self._unwritten()))

    def _unwritten(self) -> Iterator[str]:
        """Yield the tensors that the runtime never writes."""
        for o in self.operators:
            yield from (f"tensor {t.index} of operator {o.place} {o.op}" for t in o.tensors if t.unwritten)
        if not self.operators:
            yield from (f"output {place_in(t.signature, k)}" for k, t in self.numbered_outputs if t.unwritten)

    def _missing(self) -> Iterator[str]:
        """Yield the parts that were not compared, with reasons."""
        yield from (f"operator {o.place} {o.op} ({o.gaps})" for o in self.operators if o.gaps)
        if not self.operators and self.operator_count:
            yield f"{self.operator_count} operators one by one (only the graph's outputs are known)"
        for k, t in self.numbered_outputs:
            if not t.is_seen or (not t.is_whole and t.covered_by is None):
                reason = t.reason or ("no value is known" if t.difference is None else "it has no elements")
                yield f"output {place_in(t.signature, k)} ({reason})"
        for one in self.apart:
            if not one.callers:
                yield f"{one} (no operator runs it)"
            elif not self._reaches(one):
                yield f"{one} ({_callers(one)}, of which nothing was compared)"

    @property
    def numbered_outputs(self) -> tuple[tuple[int, TensorResult], ...]:
        """The outputs with their position in their signature's graph."""
        counts: Counter[str] = Counter()
        numbered = []
        for output in self.outputs:
            numbered.append((counts[output.signature], output))
            counts[output.signature] += 1
        return tuple(numbered)

    def _reaches(self, one: Apart) -> bool:
        """Return whether results that depend on a subgraph's operators were compared, or outputs end to end."""
        if not self.operators:
            return bool(one.callers)
        return any((o.signature, o.index) in one.callers and _ran(o) for o in self.operators)

    @property
    def first_divergent(self) -> OperatorResult | None:
        """The first operator, in execution order, that differs."""
        return next((o for o in self.operators if o.status == Status.DIFFERS), None)

    @property
    def compared(self) -> int:
        """Elements compared, over all samples."""
        return sum(t.difference.elements for t in self.tensors if t.difference is not None)

    @property
    def differing(self) -> int:
        """Elements that differ, over all samples."""
        return sum(t.difference.differing for t in self.tensors if t.difference is not None)

    @property
    def tensors(self) -> tuple[TensorResult, ...]:
        """The operators' results, and the outputs of the graph that are compared on their own."""
        return (*(t for o in self.operators for t in o.tensors), *(t for t in self.outputs if t.covered_by is None))


def _ran(operator: OperatorResult) -> bool:
    """Return whether any of its results was compared, or it ran and has none."""
    return operator.status == Status.EXACT or any(t.difference is not None for t in operator.tensors)


def _callers(one: Apart) -> str:
    named = ((place_in(*key), name) for key, name in one.callers.items())
    return "through operator " + ", ".join(f"{place} {name}" for place, name in named)


class WholeModel:
    """A subgraph that runs end to end; plans are kept for samples of equal shapes."""

    def __init__(self, model: Model, profile: Profile, subgraph: int = 0) -> None:
        self._model, self._profile, self._subgraph = model, profile, subgraph
        self._plans: dict[object, Plan] = {}

    def plan(self, sample: Sequence[Array]) -> Plan:
        """Return the plan for a sample's shapes."""
        graph = view(self._model, self._subgraph)
        if len(sample) != len(graph.inputs):
            raise GoldenError(f"expected {len(graph.inputs)} inputs a sample, got {len(sample)}")
        shapes = tuple(value.shape for value in sample)
        if shapes not in self._plans:
            named = dict(zip(graph.inputs, shapes, strict=True))
            self._plans[shapes] = make_plan(self._model, self._profile, self._subgraph, named)
        return self._plans[shapes]

    def run(
        self, sample: Sequence[Array], *, keep_all: bool = False, state: State | None = None
    ) -> tuple[Plan, State, Trace]:
        """Run one sample, in a fresh state or in one that earlier samples left."""
        plan, state = self.plan(sample), State() if state is None else state
        fed = dict(zip(plan.inputs, sample, strict=True))
        return plan, state, run(plan, fed, state, keep_all=keep_all)


@dataclass(slots=True, eq=False)
class _Output:
    """One output over all samples so far, with counts of samples by their kind of comparison."""

    found: list[Difference] = field(default_factory=list)
    covered: int = 0
    apart: int = 0
    contradictory: int = 0
    reason: str = ""
    promise: Exactness | None = None
    unwritten: int = 0


class Outputs:
    """Comparisons of the graph's outputs, collected sample by sample."""

    def __init__(self, model: Model, whole: WholeModel, uncertain: Unwritten) -> None:
        self._graph, self._uncertain = view(model), uncertain
        self._makers = self._graph.last_writers
        self._whole = whole
        self._rows = [_Output() for _ in self._graph.outputs]
        self._samples = 0

    def add(
        self,
        observation: Observation,
        known: Mapping[int, Array],
        operators: Sequence[Located],
        ran: tuple[Plan, Trace] | None = None,
        *,
        is_fresh: bool = True,
    ) -> None:
        """Compare the outputs of the next sample.

        Args:
            observation: The sample as recorded.
            known: The values that the operators were compared with, by tensor.
            operators: The comparisons of this sample's operators; empty if none were made.
            ran: The whole model's run of this sample, if it was made.
            is_fresh: No step before this one left a state.
        """
        k, failure = self._samples, ""
        self._samples += 1
        for row, tensor, output in zip(self._rows, self._graph.outputs, observation.outputs, strict=True):
            tapped = observation.tensors.get(tensor)
            value = tapped if output is None else output
            if tensor in self._uncertain.seen or any(tensor in one.unwritten for one in operators):
                row.unwritten += 1
                continue
            if value is None:
                row.reason = row.reason or UNKNOWN
                continue
            maker = self._makers.get(tensor)
            agrees = tensor in known and difference(known[tensor], value).same
            if operators and maker is not None and agrees:
                self._cover(row, operators[maker], tensor)
                continue
            row.contradictory += bool(operators) and maker is not None
            if ran is None and not is_fresh:
                failure = "it continues a step: mode cumulative compares it"
            if ran is None and not failure:
                try:
                    plan, _, trace = self._whole.run(observation.inputs)
                    ran = plan, trace
                except TflqError as error:
                    failure = error.statement
            if ran is None:
                row.reason = f"the model cannot be run end to end: {failure}"
                continue
            require_shape(ran[0], tensor, self._graph.tensors[tensor], value)
            found = difference(value, ran[1].values[tensor], k)
            if self._uncertain.holds(tensor, differs=not found.same):
                row.unwritten += 1
                continue
            row.found.append(found)
            row.promise = ran[1].promises.get(tensor, EXACT)
            row.apart += 1

    def _cover(self, row: _Output, operator: Located, tensor: int) -> None:
        if tensor not in operator.differences:
            row.reason = operator.failure or operator.notes.get(tensor, "") or f"operator {operator.index} has no value"
            return
        row.found.append(operator.differences[tensor])
        row.promise = row.promise or operator.promises.get(tensor)
        row.covered += 1

    def results(self) -> tuple[TensorResult, ...]:
        """Return the outputs over all samples."""
        return tuple(self._result(row, t) for row, t in zip(self._rows, self._graph.outputs, strict=True))

    def _result(self, row: _Output, tensor: int) -> TensorResult:
        maker = self._makers.get(tensor)
        return tensor_result(
            self._graph.tensors[tensor],
            tensor,
            row.found,
            self._samples,
            row.reason,
            promise=row.promise,
            covered_by=None if row.apart or not row.covered else maker,
            unwritten=0 < row.unwritten == self._samples,
        )

    def notes(self) -> tuple[Statement, ...]:
        """Return a note for each output with two different values in a recording."""
        return tuple(
            Statement(
                f"output {k}: the recorded output is not the recorded result of operator {self._makers[tensor]} in "
                f"{row.contradictory} of {self._samples} samples: it was compared with a run of the whole model",
                "contradictory-output",
                output=k,
                operator=self._makers[tensor],
                contradictory=row.contradictory,
                samples=self._samples,
            )
            for k, (row, tensor) in enumerate(zip(self._rows, self._graph.outputs, strict=True))
            if row.contradictory
        )


def tensor_result(
    spec: TensorSpec,
    index: int,
    differences: Sequence[Difference],
    samples: int,
    reason: str = "",
    shape: tuple[int, ...] | None = None,
    promise: Exactness | None = None,
    covered_by: int | None = None,
    unwritten: bool = False,
) -> TensorResult:
    """Merge a tensor's differences, one for each sample in which it was compared, out of `samples`."""
    count = len(differences)
    if count and count < samples:
        reason = f"compared in {count} of {samples} samples only" + (f": {reason}" if reason else "")
    return TensorResult(
        index=index,
        name=spec.name or "",
        type=spec.type.label if isinstance(spec.type, TensorType) else str(spec.type),
        shape=spec.shape if shape is None else shape,
        difference=merge(differences) if differences else None,
        reason=NOT_WRITTEN if unwritten else "" if count and count >= samples else reason or UNKNOWN,
        promise=promise,
        covered_by=covered_by,
        unwritten=unwritten,
    )


def guards(model: Model, golden: Golden) -> tuple[Statement, ...]:
    """Return notes about the outputs: all constant, NaN, infinite, saturated, or equal for different inputs."""
    notes, golden = [], golden.plain()
    outputs = [value for o in golden.observations for value in o.outputs if value is not None]
    filled = [value for value in outputs if value.size > 1 and value.dtype.kind != "O"]
    if filled and all(_constant(value) for value in filled):
        text = "all outputs are constant: every element of each has one value, so they can reveal little"
        notes.append(Statement(text, "constant-outputs", outputs=len(filled)))
    elif golden.observations and len(golden.observations) > 1 and _all_equal(golden):
        text = "all samples have the same outputs although their inputs differ, so they can reveal little"
        notes.append(Statement(text, "equal-outputs", samples=len(golden.observations)))
    floats = [value for value in outputs if value.dtype.kind == "f"]
    nans = sum(int(np.count_nonzero(np.isnan(value))) for value in floats)
    infinite = sum(int(np.count_nonzero(np.isinf(value))) for value in floats)
    if nans:
        text = f"{nans} output element(s) are NaN; NaN counts as equal to NaN"
        notes.append(Statement(text, "nan-outputs", elements=nans))
    if infinite:
        notes.append(Statement(f"{infinite} output element(s) are infinite", "infinite-outputs", elements=infinite))
    if not any(value.size for value in outputs):
        notes.append(Statement("the outputs hold no elements", "empty-outputs"))
    return tuple(notes)


def _constant(value: Array) -> bool:
    first = value.ravel()[0]
    return bool(np.all((value == first) | ((value != value) & (first != first))))


def _all_equal(golden: Golden) -> bool:
    first, *others = golden.observations
    if all(digest_of(first.inputs) == digest_of(o.inputs) for o in others):
        return False
    return all(digest_of(first.outputs) == digest_of(o.outputs) for o in others)


def known_changes(model: Model, operators: Iterable[int], one: str, other: str) -> tuple[ReleaseChange, ...]:
    """Return what releases changed between two profiles in these operators, each change once."""
    graph = view(model)
    found: dict[ReleaseChange, None] = {}
    for op in (graph.op(index) for index in operators):
        ends = [graph.tensors[t].type for t in (*op.inputs[:1], *op.outputs[:1]) if t >= 0]
        types = {type_.name.lower() for type_ in ends if isinstance(type_, TensorType)}
        found |= dict.fromkeys(changes_between(one, other, op.builtin, types))
    return tuple(found)
