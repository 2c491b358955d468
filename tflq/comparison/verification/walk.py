"""Compare a profile's results with observed ones: end to end, or operator by operator on observed inputs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tflq.comparison.evidence.dumps import dumps_of
from tflq.comparison.goldens.golden import Golden, Observation, StoredTensor, own_profile, parts_named
from tflq.comparison.goldens.record import Unwritten, unwritten, without_unwritten
from tflq.comparison.inspection.difference import difference
from tflq.comparison.results import CompareMode, Located, OperatorResult, TensorResult, merge_samples
from tflq.comparison.verification.localization import (
    REWRITTEN,
    UNKNOWN,
    Handled,
    Localizer,
    StepMemory,
    constants_after,
    has_results,
    require_shape,
)
from tflq.comparison.verification.report import Outputs, WholeModel, tensor_result
from tflq.engine.interpreter import Plan, State, Trace
from tflq.engine.profiles import Profile
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, Signed, view
from tflq.model.surgery.cut import OPAQUE
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class SignatureComparison:
    """Operators in execution order, the graph's outputs, and notes about both."""

    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]


def compared(
    model: Model, parts: Sequence[Signed], profile: Profile, golden: Golden, progress: Progress, mode: CompareMode
) -> tuple[SignatureComparison, ...]:
    """Compare each signature's samples; those that continue do so with the state that earlier ones left."""
    steps = golden.steps
    runs = own_profile(golden.runtime) or profile
    seen = [[t for s, t in golden.unwritten or () if parts_named(parts, s) == p] for p in range(len(parts))]
    gaps = [Unwritten(frozenset(tensors)) for tensors in seen]
    if golden.unwritten is None:
        gaps = [unwritten(part.model, runs) for part in parts]
    own = [
        [k for k, (signature, _) in enumerate(steps) if parts_named(parts, signature) == p] for p in range(len(parts))
    ]
    kind = _OneByOne if mode == CompareMode.ISOLATED else _EndToEnd
    walks = (kind(model, part, gap, profile, golden.tensors) for part, gap in zip(parts, gaps, strict=True))
    if any(continues for _, continues in steps):
        return _in_order(parts, list(walks), golden, progress)
    return tuple(_of_one(walk, golden.chosen(numbers), progress) for walk, numbers in zip(walks, own, strict=True))


class Walk(Protocol):
    """The comparison of one signature's samples, as they are added."""

    #: Number of samples of a stored golden that are in memory together; 1: samples are never compared together.
    at_once: int

    def add(self, observations: Sequence[Observation], memories: Sequence[StepMemory], progress: Progress) -> None:
        """Compare the next samples. `memories` hold what each begins with; none: each begins without state.

        Samples that are added together are compared operator by operator, so that plans are made once for all.
        """

    def comparison(self) -> SignatureComparison:
        """Return the comparison of all samples."""


def _of_one(walk: Walk, golden: Golden, progress: Progress) -> SignatureComparison:
    """Compare samples of one signature that do not continue each other."""
    count = len(golden.observations)
    is_single = walk.at_once == 1
    step = walk.at_once if is_single or isinstance(golden.observations, StoredTensor) else max(1, count)
    for first in range(0, count, step):
        if is_single:
            progress("running", first, count)
        walk.add(golden.observations[first : first + step], (), progress)
    return walk.comparison()


def _in_order(
    parts: Sequence[Signed], walks: Sequence[Walk], golden: Golden, progress: Progress
) -> tuple[SignatureComparison, ...]:
    """Compare samples in the order in which they ran; resources are shared by all signatures of one interpreter."""
    memories: dict[int, StepMemory] = {}
    for k, observation in enumerate(golden.observations):
        progress("running", k, len(golden.observations))
        p = parts_named(parts, observation.signature)
        if not observation.continues or not memories:
            memories, resources = {}, dict[Hashable, Any]()
        memory = memories.setdefault(p, StepMemory(state=State(resources=resources)))
        walks[p].add([observation], [memory], silent)
    return tuple(walk.comparison() for walk in walks)


class _OneByOne:
    """One signature's samples, every operator alone on the observed inputs: faults do not spread to later operators.

    If the profile cannot run an operator, or its inputs are unknown, it is not compared, and the reason is reported.
    Variable tensors are not observed between operators: their values come from this package's own operators, and after
    a sample they are those that were observed.
    """

    at_once = 8

    def __init__(self, model: Model, part: Signed, gaps: Unwritten, profile: Profile, _tensors: bool) -> None:
        self._part, self._graph = part, view(part.model)
        handled = Handled(model, part.root.subgraph, profile)
        self._localizer = Localizer(
            part.model, profile, assumes=False, is_expected=True, handled=handled, unwritten=gaps
        )
        self._rows: list[list[Located]] = [[] for _ in self._graph.ops]
        self._outputs = Outputs(part.model, WholeModel(model, profile, part.root.subgraph), gaps)
        self._count = 0
        self._plans: dict[int, dict[object, Plan]] = {}

    def add(self, observations: Sequence[Observation], memories: Sequence[StepMemory], progress: Progress) -> None:
        """Compare the next samples; the variables of `memories` then are those that were observed."""
        dumps, specs, names = dumps_of(self._part.model, observations), self._graph.tensors, self._graph.ops
        located = self._localizer.operators(dumps, self._count, memories, self._plans if memories else None)
        for index, row in enumerate(self._rows):
            progress(names[index].name, index, len(names))
            row += next(located)
        for k, (observation, dump) in enumerate(zip(observations, dumps, strict=True), self._count):
            is_fresh = not memories or not observation.continues
            self._outputs.add(observation, dump.tensors, [row[k] for row in self._rows], is_fresh=is_fresh)
        for memory, dump in zip(memories, dumps, strict=True) if memories else ():
            memory.variables.update({t: value for t, value in dump.tensors.items() if specs[t].is_variable})
        self._count += len(observations)

    def comparison(self) -> SignatureComparison:
        """Return the comparison of all samples."""
        return _comparison(self._part, self._rows, self._outputs)


class _EndToEnd:
    """One signature's samples, each run end to end: every operator's results, if they are known, and the outputs."""

    at_once = 1

    def __init__(self, model: Model, part: Signed, gaps: Unwritten, profile: Profile, tensors: bool) -> None:
        self._part, self._gaps, self._tensors = part, gaps, tensors
        self._graph = view(part.model)
        self._rows: list[list[Located]] = [[] for _ in self._graph.ops]
        self._whole = WholeModel(model, profile, part.root.subgraph)
        self._outputs = Outputs(part.model, self._whole, gaps)
        self._count = 0

    def add(self, observations: Sequence[Observation], memories: Sequence[StepMemory], progress: Progress) -> None:
        """Run the next samples."""
        for observation, memory in zip(observations, memories or map(_begin, observations), strict=True):
            self._run(observation, memory)

    def _run(self, observation: Observation, memory: StepMemory) -> None:
        makers, k = self._graph.last_writers, self._count
        self._count += 1
        plan, state, trace = self._whole.run(observation.inputs, keep_all=self._tensors, state=memory.state)
        known = dumps_of(self._part.model, [observation])[0].tensors
        for index in range(len(self._rows)) if self._tensors else ():
            located = _of_run(plan, state, trace, known, k, index, makers)
            self._rows[index].append(without_unwritten(located, self._gaps))
        self._outputs.add(observation, known, [row[k] for row in self._rows if row], (plan, trace))

    def comparison(self) -> SignatureComparison:
        """Return the comparison of all samples."""
        return _comparison(self._part, self._rows if self._tensors else [], self._outputs)


def _begin(_observation: Observation) -> StepMemory:
    return StepMemory()


def _of_run(
    plan: Plan,
    state: State,
    trace: Trace,
    known: Mapping[int, Array],
    sample: int,
    index: int,
    makers: Mapping[int, int],
) -> Located:
    """Return one operator of one run next to the observed values."""
    graph, op = plan.graph, plan.graph.op(index)
    step = next((s for s in plan.steps if s.index == index), None)
    readable = (t for t in op.writes if t not in graph.inputs and graph.tensors[t].type not in OPAQUE)
    results = {t: trace.values[t] for t in readable if t in trace.values}
    differences, notes = {}, {}
    for tensor, value in results.items():
        expected = known.get(tensor)
        require_shape(plan, tensor, graph.tensors[tensor], expected)
        if makers[tensor] != index:
            notes[tensor] = REWRITTEN
        elif expected is None:
            notes[tensor] = UNKNOWN
        else:
            differences[tensor] = difference(expected, value, sample)
    return Located(
        index,
        op.name,
        differences,
        promises={t: trace.promise(t) for t in results},
        shapes={t: v.shape for t, v in results.items()},
        notes=notes,
        constants=None if step is None else constants_after(step.prepared, state, index),
        silent=not has_results(op),
    )


# --- results ----------------------------------------------------------------------------------------------------------


def _comparison(part: Signed, rows: Sequence[Sequence[Located]], outputs: Outputs) -> SignatureComparison:
    """Return one signature's comparison; its results name it."""
    operators = tuple(replace(_operator(part.model, i, row), signature=part.name) for i, row in enumerate(rows))
    results = tuple(replace(result, signature=part.name) for result in outputs.results())
    notes = tuple(note.of(part.name) for note in outputs.notes())
    return SignatureComparison(operators, results, notes)


def _operator(model: Model, index: int, row: Sequence[Located]) -> OperatorResult:
    """Merge one operator's samples, of which there may be none."""
    op = view(model).op(index)
    located = merge_samples(row) if row else Located(index, op.name, {}, failure="there are no samples")
    notes = {t: note for one in row for t, note in one.notes.items()}
    tensors = [t for t in op.writes if t in located.differences or t in notes]
    results = tuple(
        tensor_result(
            op.graph.tensors[t],
            t,
            [one.differences[t] for one in row if t in one.differences],
            len(row),
            notes.get(t, ""),
            located.shapes.get(t),
            located.promises.get(t),
            unwritten=bool(row) and all(t in one.unwritten for one in row),
        )
        for t in tensors
    )
    return OperatorResult(
        index=index,
        op=located.op,
        version=op.version,
        tensors=results,
        reason=located.failure or ("" if results or located.silent else "it has no results that can be compared"),
        constants=located.constants,
        silent=located.silent,
    )
