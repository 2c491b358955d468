"""Compare a profile's results with observed ones: end to end, or operator by operator on observed inputs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tflq.comparison.inspection.difference import difference
from tflq.comparison.verification.compared import REWRITTEN, UNKNOWN, constants_after, require_shape
from tflq.comparison.verification.counterpart import own_profile
from tflq.comparison.verification.dump import dumps_of
from tflq.comparison.verification.golden import Golden, Observation, Stored
from tflq.comparison.verification.handles import Handled, Memory, has_results
from tflq.comparison.verification.localization import Localizer
from tflq.comparison.verification.outputs import Outputs, WholeModel, tensor_result
from tflq.comparison.verification.results import Located, Mode, OperatorResult, TensorResult, merge_samples
from tflq.comparison.verification.signed import named
from tflq.comparison.verification.unwritten import Unwritten, unwritten, without_unwritten
from tflq.engine.interpreter import Plan, State, Trace
from tflq.engine.profiles import Profile
from tflq.model.ir import Model, Signed, view
from tflq.model.surgery.cut import OPAQUE
from tflq.progress import Progress
from tflq.typing import Array

#: progress(what, done, total): called during the work.
#: Number of samples of a stored golden that are in memory together.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Operators in execution order, the graph's outputs, and notes about both."""

    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]


def compared(
    model: Model, parts: Sequence[Signed], profile: Profile, golden: Golden, progress: Progress, mode: Mode
) -> tuple[Comparison, ...]:
    """Compare each signature's samples; those that continue do so with the state that earlier ones left."""
    steps = golden.steps
    runs = own_profile(golden.runtime) or profile
    seen = [[t for s, t in golden.unwritten or () if named(parts, s) == p] for p in range(len(parts))]
    gaps = [Unwritten(frozenset(tensors)) for tensors in seen]
    if golden.unwritten is None:
        gaps = [unwritten(part.model, runs) for part in parts]
    own = [[k for k, (signature, _) in enumerate(steps) if named(parts, signature) == p] for p in range(len(parts))]
    if any(continues for _, continues in steps):
        return _in_order(model, parts, gaps, profile, golden, progress, mode)
    compare = isolate if mode == Mode.ISOLATED else cumulative
    return tuple(
        compare(model, part, gap, profile, golden.chosen(numbers), progress)
        for part, gap, numbers in zip(parts, gaps, own, strict=True)
    )


# --- isolated --------------------------------------------------------------------------------------------------------


def isolate(
    model: Model, part: Signed, gaps: Unwritten, profile: Profile, golden: Golden, progress: Progress
) -> Comparison:
    """Run every operator alone on the observed inputs, so that faults do not spread to later operators.

    If the profile cannot run an operator, or its inputs are unknown, it is not compared, and the reason is reported.
    Variable tensors are not observed between operators: their values come from this package's own operators.
    """
    names = [op.name for op in view(part.model).ops]
    count = len(names)
    localizer = _localizer(model, part, gaps, profile)
    step = _AT_ONCE if isinstance(golden.observations, Stored) else max(1, len(golden.observations))
    located: list[list[Located]] = [[] for _ in range(count)]
    outputs = Outputs(part.model, WholeModel(model, profile, part.root.subgraph), gaps)
    for first in range(0, len(golden.observations), step):
        observations = golden.observations[first : first + step]
        dumps = dumps_of(part.model, observations)
        rows = localizer.operators(dumps, first)
        for index in range(count):
            progress(names[index], index, count)
            located[index] += next(rows)
        for k, (observation, dump) in enumerate(zip(observations, dumps, strict=True), first):
            outputs.add(observation, dump.tensors, [row[k] for row in located])
    return _comparison(part, located, outputs)


def _localizer(model: Model, part: Signed, gaps: Unwritten, profile: Profile) -> Localizer:
    handled = Handled(model, part.root.subgraph, profile)
    return Localizer(part.model, profile, assumes=False, is_expected=True, handled=handled, unwritten=gaps)


# --- cumulative ------------------------------------------------------------------------------------------------------


def cumulative(
    model: Model, part: Signed, gaps: Unwritten, profile: Profile, golden: Golden, progress: Progress
) -> Comparison:
    """Run the model end to end; compare every operator's results (if they are known) and the graph's outputs."""
    walk = _EndToEnd(model, part, gaps, profile, golden.tensors)
    for k, observation in enumerate(golden.observations):
        progress("running", k, len(golden.observations))
        walk.add(observation, Memory())
    return walk.comparison()


class _EndToEnd:
    """One signature's samples, each run end to end."""

    def __init__(self, model: Model, part: Signed, gaps: Unwritten, profile: Profile, tensors: bool) -> None:
        self._part, self._gaps, self._tensors = part, gaps, tensors
        self._graph = view(part.model)
        self._rows: list[list[Located]] = [[] for _ in self._graph.ops]
        self._whole = WholeModel(model, profile, part.root.subgraph)
        self._outputs = Outputs(part.model, self._whole, gaps)
        self._count = 0

    def add(self, observation: Observation, memory: Memory) -> None:
        """Run the next sample."""
        makers, k = self._graph.last_writers, self._count
        self._count += 1
        plan, state, trace = self._whole.run(observation.inputs, keep_all=self._tensors, state=memory.state)
        known = dumps_of(self._part.model, [observation])[0].tensors
        for index in range(len(self._rows)) if self._tensors else ():
            located = _of_run(plan, state, trace, known, k, index, makers)
            self._rows[index].append(without_unwritten(located, self._gaps))
        self._outputs.add(observation, known, [row[k] for row in self._rows if row], (plan, trace))

    def comparison(self) -> Comparison:
        """Return the comparison of all samples."""
        return _comparison(self._part, self._rows if self._tensors else [], self._outputs)


# --- in order --------------------------------------------------------------------------------------------------------


class _OneByOne:
    """One signature's samples, each operator alone, in an order that other signatures share."""

    def __init__(self, model: Model, part: Signed, gaps: Unwritten, profile: Profile) -> None:
        self._part, self._localizer = part, _localizer(model, part, gaps, profile)
        self._rows: list[list[Located]] = [[] for _ in view(part.model).ops]
        self._outputs = Outputs(part.model, WholeModel(model, profile, part.root.subgraph), gaps)
        self._count = 0
        self._plans: dict[int, dict[object, Plan]] = {}

    def add(self, observation: Observation, memory: Memory) -> None:
        """Compare the next sample; its variables then are those that were observed."""
        k = self._count
        self._count += 1
        (dump,) = dumps_of(self._part.model, [observation])
        operators = [row for (row,) in self._localizer.operators([dump], k, [memory], self._plans)]
        for row, located in zip(self._rows, operators, strict=True):
            row.append(located)
        self._outputs.add(observation, dump.tensors, operators, is_fresh=not observation.continues)
        specs = view(self._part.model).tensors
        memory.variables.update({t: value for t, value in dump.tensors.items() if specs[t].is_variable})

    def comparison(self) -> Comparison:
        """Return the comparison of all samples."""
        return _comparison(self._part, self._rows, self._outputs)


def _in_order(
    model: Model,
    parts: Sequence[Signed],
    gaps: Sequence[Unwritten],
    profile: Profile,
    golden: Golden,
    progress: Progress,
    mode: Mode,
) -> tuple[Comparison, ...]:
    """Compare samples in the order in which they ran; resources are shared by all signatures of one interpreter."""
    both = list(zip(parts, gaps, strict=True))
    if mode == Mode.ISOLATED:
        walks: list[_OneByOne | _EndToEnd] = [_OneByOne(model, part, gap, profile) for part, gap in both]
    else:
        walks = [_EndToEnd(model, part, gap, profile, golden.tensors) for part, gap in both]
    memories: dict[int, Memory] = {}
    for k, observation in enumerate(golden.observations):
        progress("running", k, len(golden.observations))
        p = named(parts, observation.signature)
        if not observation.continues or not memories:
            memories, resources = {}, dict[Hashable, Any]()
        memory = memories.setdefault(p, Memory(state=State(resources=resources)))
        walks[p].add(observation, memory)
    return tuple(walk.comparison() for walk in walks)


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


# --- both ------------------------------------------------------------------------------------------------------------


def _comparison(part: Signed, rows: Sequence[Sequence[Located]], outputs: Outputs) -> Comparison:
    """Return one signature's comparison; its results name it."""
    operators = tuple(replace(_operator(part.model, i, row), signature=part.name) for i, row in enumerate(rows))
    results = tuple(replace(result, signature=part.name) for result in outputs.results())
    notes = tuple(note.of(part.name) for note in outputs.notes())
    return Comparison(operators, results, notes)


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
