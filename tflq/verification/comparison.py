"""Compare a profile's results with observed ones: end to end, or operator by operator on observed inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tflq.inspection.difference import difference
from tflq.interpreter import Plan, State, Trace
from tflq.ir import Model, view
from tflq.profiles import Profile
from tflq.verification.dump import dumps_of
from tflq.verification.golden import Golden, Stored
from tflq.verification.localization import REWRITTEN, UNKNOWN, Localizer, constants_after, require_shape
from tflq.verification.outputs import Outputs, WholeModel, tensor_result
from tflq.verification.results import Located, OperatorResult, TensorResult, merged_samples

Array = NDArray[Any]
#: progress(what, done, total): called during the work.
Progress: TypeAlias = "Callable[[str, int, int], None]"
#: Number of samples of a stored golden that are in memory together.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Operators in execution order, the graph's outputs, and notes about both."""

    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]


# --- isolated --------------------------------------------------------------------------------------------------------


def isolated(model: Model, profile: Profile, golden: Golden, progress: Progress) -> Comparison:
    """Run every operator alone on the observed inputs, so that faults do not spread to later operators.

    If the profile cannot run an operator, or its inputs are unknown, it is not compared, and the reason is reported.
    Variable tensors are not observed between operators: their values come from this package's own operators.
    """
    names = [op.name for op in view(model).ops]
    count = len(names)
    localizer = Localizer(model, profile, assumes=False, is_expected=True)
    step = _AT_ONCE if isinstance(golden.observations, Stored) else max(1, len(golden.observations))
    located: list[list[Located]] = [[] for _ in range(count)]
    outputs = Outputs(model, profile)
    for first in range(0, len(golden.observations), step):
        observations = golden.observations[first : first + step]
        dumps = dumps_of(model, observations)
        rows = localizer.operators(dumps, first)
        for index in range(count):
            progress(names[index], index, count)
            located[index] += next(rows)
        for k, (observation, dump) in enumerate(zip(observations, dumps, strict=True), first):
            outputs.add(observation, dump.tensors, [row[k] for row in located])
    operators = tuple(_operator(model, index, row) for index, row in enumerate(located))
    return Comparison(operators, outputs.results(), outputs.notes())


# --- cumulative ------------------------------------------------------------------------------------------------------


def cumulative(model: Model, profile: Profile, golden: Golden, progress: Progress) -> Comparison:
    """Run the model end to end; compare every operator's results (if they are known) and the graph's outputs."""
    graph = view(model)
    makers = graph.last_writers
    rows: list[list[Located]] = [[] for _ in graph.ops]
    whole, outputs = WholeModel(model, profile), Outputs(model, profile)
    for k, observation in enumerate(golden.observations):
        progress("running", k, len(golden.observations))
        plan, state, trace = whole.run(observation.inputs, keep_all=golden.tensors)
        known = dumps_of(model, [observation])[0].tensors
        for index in range(len(graph.ops)) if golden.tensors else ():
            rows[index].append(_of_run(plan, state, trace, known, k, index, makers))
        outputs.add(observation, known, [row[k] for row in rows if row], (plan, trace))
    operators = tuple(_operator(model, i, row) for i, row in enumerate(rows)) if golden.tensors else ()
    return Comparison(operators, outputs.results(), outputs.notes())


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
    results = {t: trace.values[t] for t in op.writes if t in trace.values and t not in graph.inputs}
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
    )


# --- both ------------------------------------------------------------------------------------------------------------


def _operator(model: Model, index: int, row: Sequence[Located]) -> OperatorResult:
    """Merge one operator's samples, of which there may be none."""
    op = view(model).op(index)
    located = merged_samples(row) if row else Located(index, op.name, {}, failure="there are no samples")
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
        )
        for t in tensors
    )
    return OperatorResult(
        index=index,
        op=located.op,
        version=op.version,
        tensors=results,
        reason=located.failure or ("" if results else "it has no results that can be compared"),
        constants=located.constants,
    )
