"""The outputs of the graph: recorded values compared with those of the operators, or of the whole model.

A recording with all tensors holds an output twice: as an output of the model, and as the result that was read from its
operator. If both are equal, the operator's comparison covers the output. If they differ, or if no operator makes the
output (it is an input or a constant), the whole model is run and the output is compared with that run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tflq.comparison.inspection.difference import Difference, difference, merge
from tflq.comparison.verification.compared import UNKNOWN, require_shape
from tflq.comparison.verification.golden import Observation
from tflq.comparison.verification.results import NOT_WRITTEN, Located, TensorResult
from tflq.comparison.verification.unwritten import Unwritten
from tflq.engine.interpreter import Plan, State, Trace, make_plan, run
from tflq.engine.kernels.exactness import EXACT, Exactness
from tflq.engine.profiles import Profile
from tflq.errors import GoldenError, TflqError
from tflq.model.ir import Model, TensorSpec, TensorType, view
from tflq.statements import Statement
from tflq.typing import Array


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
