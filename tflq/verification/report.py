"""The outcome of a verification as one frozen value: the comparisons, the differences, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tflq.api.subject import ModelFacts
from tflq.display import displayed_by
from tflq.runtimes import Description
from tflq.verification.coverage import Apart, Coverage
from tflq.verification.results import InputFacts, Mode, OperatorResult, Status, TensorResult, Verdict, verdict_of


@displayed_by("verify.report:verify_card")
@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The outcome of one verification.

    `operators` are in execution order; empty for a golden that holds outputs only. `outputs` are the graph's outputs,
    end to end or as an operator's recorded results. `operator_count` is the number of the first subgraph's operators,
    `apart` describes other subgraphs. `golden` is the path of the golden file, if any.
    """

    model: ModelFacts
    profile: str
    against: Description | Mapping[str, object]
    golden: str
    mode: Mode
    inputs: InputFacts
    operators: tuple[OperatorResult, ...]
    outputs: tuple[TensorResult, ...]
    notes: tuple[str, ...]
    operator_count: int = 0
    apart: tuple[Apart, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict: same, close, differs, incomplete, or nothing compared."""
        statuses = {o.status for o in self.operators} | {t.status for t in self.outputs}
        unseen = {Status.NOT_COMPARED for one in self.apart if not one.callers}
        return verdict_of(statuses | unseen, self.compared)

    @property
    def rest(self) -> Verdict:
        """The verdict if everything that differs or was not compared had been as expected."""
        statuses = {o.status for o in self.operators} | {t.status for t in self.outputs}
        return verdict_of(statuses & {Status.CLOSE}, self.compared)

    @property
    def coverage(self) -> Coverage:
        """The number of compared parts, the number of all, and a list of missing ones."""
        whole = sum(o.is_whole for o in self.operators), max(self.operator_count, len(self.operators))
        outputs = sum(t.is_whole for t in self.outputs), len(self.outputs)
        inside = [
            f"{one}, {_callers(one)}, as far as these inputs run them" for one in self.apart if self._reaches(one)
        ]
        return Coverage(whole, outputs, tuple(self._missing()), tuple(inside))

    def _missing(self) -> Iterator[str]:
        """Yield the parts that were not compared, with reasons."""
        yield from (f"operator {o.index} {o.op} ({o.gaps})" for o in self.operators if not o.is_whole)
        if not self.operators and self.operator_count:
            yield f"{self.operator_count} operators one by one (only the graph's outputs are known)"
        yield from (
            f"output {k} ({t.reason or 'no value is known'})"
            for k, t in enumerate(self.outputs)
            if not t.is_whole and t.covered_by is None
        )
        for one in self.apart:
            if not one.callers:
                yield f"{one} (no operator runs it)"
            elif not self._reaches(one):
                yield f"{one} ({_callers(one)}, of which nothing was compared)"

    def _reaches(self, one: Apart) -> bool:
        """Return whether results that depend on a subgraph's operators were compared, or outputs end to end."""
        if not self.operators:
            return bool(one.callers)
        return any(o.index in one.callers and any(t.difference is not None for t in o.tensors) for o in self.operators)

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


def _callers(one: Apart) -> str:
    return "through operator " + ", ".join(f"{index} {name}" for index, name in one.callers.items())
